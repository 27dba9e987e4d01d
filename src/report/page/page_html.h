#pragma once
#include <string>

#include "report/page/page.h"

namespace trireme {

// One file that needs no other: style, script and pictures are inside, nothing is fetched. Readable
// on a phone, in print, on a dark background and without colour vision; every chart is also there
// as a table. Every text of the page is escaped. Long curves and tables are thinned, and say so.
std::string PageHtml(const Page& page);

// What changes while a page is looked at, besides its sections.
struct LiveState {
  std::string title;  // of the browser's tab
  std::string text;   // stands on top
  bool over = false;  // little will be new
};

// The same page, which asks its server for newer content every two seconds: GET /data answers
// {"html": PageContent(...), "title": ..., "state": "running", "over": false}.
std::string LivePageHtml(const Page& page, const LiveState& state);

std::string PageContent(const Page& page);  // the sections alone

}  // namespace trireme
