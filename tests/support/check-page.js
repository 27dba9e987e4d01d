// Runs inside a copy of a page, in a browser: looks at every chart and leaves what it finds as text
// in the element #findings, one per line, after a line that says what it saw.
(function () {
  'use strict';
  var findings = [];
  var seen = { figures: 0, texts: 0, hovers: 0 };
  function find(what) { findings.push(what); }
  function visible(node) { return node.getClientRects().length > 0; }

  // Text boxes of an SVG: none on another one, none outside the picture.
  function checkTexts(title, svg) {
    var frame = svg.getBoundingClientRect();
    var boxes = Array.from(svg.querySelectorAll('text')).map(function (text) {
      var box = text.getBoundingClientRect();
      return { text: text.textContent, left: box.left, right: box.right,
               top: box.top + box.height * 0.15, bottom: box.bottom - box.height * 0.15 };
    });
    seen.texts += boxes.length;
    boxes.forEach(function (a, i) {
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1) {
        find(title + ': "' + a.text + '" leaves the picture');
      }
      boxes.slice(i + 1).forEach(function (b) {
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5) {
          find(title + ': "' + a.text + '" and "' + b.text + '" overlap');
        }
      });
    });
  }

  function point(node, type) {
    var box = node.getBoundingClientRect();
    node.dispatchEvent(new PointerEvent(type, { bubbles: true,
      clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
  }

  function checkHover(title, svg) {
    var tip = document.getElementById('tip');
    var target = svg.classList.contains('line') ? svg : svg.querySelector('[data-tip]');
    if (!target) return;
    if (svg.classList.contains('line') && !svg.querySelector('g.s path')) return;  // no values
    point(target, 'pointermove');
    if (getComputedStyle(tip).visibility !== 'visible' || !/[0-9]/.test(tip.textContent)) {
      find(title + ': hovering shows no value');
    }
    ++seen.hovers;
    point(document.body, 'pointermove');
    if (getComputedStyle(tip).visibility === 'visible') find(title + ': the value stays');
  }

  // Its own, or the one above all charts of the section.
  function checkLegend(title, figure) {
    var own = figure.querySelector('.legend li');
    var legend = own ? figure.querySelector('.legend') : figure.closest('section').querySelector('.legend.common');
    if (!legend) return find(title + ': no legend');
    var button = legend.querySelector('button');
    if (!button) return;
    var by = own ? '[data-s="' + button.dataset.s + '"]' : '[data-r="' + button.dataset.r + '"]';
    var series = figure.querySelector('g.s' + by);
    if (!series) return;
    button.click();
    if (visible(series)) find(title + ': the legend does not hide');
    button.click();
    if (!visible(series) && series.querySelector('path,rect')) find(title + ': the legend does not show again');
  }

  function checkFigure(figure) {
    ++seen.figures;
    var heading = figure.querySelector('h3'), title = heading ? heading.textContent : '';
    var svg = figure.querySelector('svg.plot');
    if (!title) find('a chart without title');
    if (!svg) return find(title + ': no picture');
    ['x', 'y'].forEach(function (axis) {
      var text = svg.querySelector('.axis.' + axis);
      if (!text || !text.textContent) find(title + ': no title of the ' + axis + ' axis');
    });
    if (!svg.classList.contains('heat') && svg.querySelectorAll('.tick').length < 2) find(title + ': no ticks');
    if (!(figure.closest('.choice') || figure).querySelector('details table td')) find(title + ': no table');
    checkTexts(title, svg);
    checkHover(title, svg);
    checkLegend(title, figure);
  }

  function checkTabs() {
    document.querySelectorAll('.tabs').forEach(function (tabs) {
      var buttons = Array.from(tabs.querySelectorAll('button'));
      buttons.forEach(function (button) {
        button.click();
        tabs.closest('section').querySelectorAll('.choice').forEach(function (choice) {
          var i = choice.dataset.names.split('\n').indexOf(button.textContent);
          if (i < 0) return;
          var shown = Array.from(choice.querySelectorAll('.of')).map(visible);
          if (shown.filter(Boolean).length !== 1 || !shown[i]) find('the choice ' + button.textContent + ' does not show its chart');
          choice.querySelectorAll('figure').forEach(function (f) { if (visible(f)) checkFigure(f); });
        });
      });
      if (buttons[0]) buttons[0].click();
    });
  }

  function checkSorting() {
    document.querySelectorAll('table.sortable').forEach(function (table) {
      var button = table.querySelectorAll('.sort')[1];
      if (!button || !visible(table)) return;
      var column = button.closest('th').cellIndex;
      button.click();
      var numbers = Array.from(table.tBodies[0].rows).map(function (r) { return parseFloat(r.cells[column].textContent); })
        .filter(function (v) { return !isNaN(v); });
      if (numbers.some(function (v, i) { return i && v > numbers[i - 1]; })) find('a click does not sort by ' + button.textContent);
      if (button.closest('th').getAttribute('aria-sort') !== 'descending') find('the order is not told');
    });
  }

  // Cards beside each other leave nothing empty to the right of a row.
  function checkRows() {
    if (innerWidth < 1100) return;
    document.querySelectorAll('.blocks').forEach(function (blocks) {
      var right = blocks.getBoundingClientRect().right, ends = {};
      Array.from(blocks.children).forEach(function (cell) {
        var box = cell.getBoundingClientRect();
        if (box.width) ends[Math.round(box.top)] = Math.max(ends[Math.round(box.top)] || 0, box.right);
      });
      Object.keys(ends).forEach(function (top) {
        if (ends[top] < right - 2) find('a row of cards ends ' + Math.round(right - ends[top]) + ' px before the edge');
      });
    });
  }

  addEventListener('load', function () {
    document.querySelectorAll('details.fold').forEach(function (d) { d.open = true; });
    document.querySelectorAll('figure').forEach(function (f) { if (!f.closest('.choice')) checkFigure(f); });
    checkTabs();
    checkSorting();
    checkRows();
    if (document.documentElement.scrollWidth > innerWidth + 1) {
      find('the page is ' + document.documentElement.scrollWidth + ' wide in a window of ' + innerWidth);
    }
    performance.getEntriesByType('resource').forEach(function (r) { find('it loads ' + r.name); });
    (window.pageErrors || []).forEach(function (e) { find('error: ' + e); });
    var timing = performance.getEntriesByType('navigation')[0];
    var out = document.createElement('pre');
    out.id = 'findings';
    out.textContent = 'seen ' + seen.figures + ' charts, ' + seen.texts + ' texts, ' + seen.hovers + ' hovers, ' +
      'width ' + innerWidth + ', interactive after ' + Math.round(timing.domInteractive) + ' ms\n' + findings.join('\n') + '\n';
    document.body.appendChild(out);
  });
})();
