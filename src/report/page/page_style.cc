#include "report/page/page_style.h"

namespace trireme {

// The colours are those of Okabe and Ito, made darker or lighter for enough contrast.
std::string_view PageStyle() {
  return R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#59636e;--line:#d8dee4;--card:#fff;--page:#f6f8fa;
--k0:#0072b2;--k1:#d55e00;--k2:#009e73;--k3:#b8558f;--k4:#a87500;--k5:#3a9bd1;--k6:#6b4fa0;--k7:#6f6f00;--on:#fff;--shade:rgba(27,31,36,.2)}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6eaee;--soft:#9aa5b1;--line:#343c46;--card:#1b2027;--page:#14181d;
--k0:#5ab4f0;--k1:#ff8f4d;--k2:#3ecf9f;--k3:#e79ac6;--k4:#f0b840;--k5:#9ad6fa;--k6:#bda7ec;--k7:#cfcf5a;--on:#0d1116;--shade:rgba(0,0,0,.7)}}
@media print{:root{--bg:#fff;--fg:#000;--soft:#444;--line:#ccc;--card:#fff;--page:#fff;
--k0:#0072b2;--k1:#d55e00;--k2:#009e73;--k3:#b8558f;--k4:#a87500;--k5:#3a9bd1;--k6:#6b4fa0;--k7:#6f6f00;--on:#fff}
#tip,.copy,.tabs{display:none!important}figure,.choice,tr,.figures{break-inside:avoid}h2,h3{break-after:avoid}body{padding:0!important}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
.c0{--c:var(--k0)}.c1{--c:var(--k1)}.c2{--c:var(--k2)}.c3{--c:var(--k3)}
.c4{--c:var(--k4)}.c5{--c:var(--k5)}.c6{--c:var(--k6)}.c7{--c:var(--k7)}
*{box-sizing:border-box}
body{margin:0;padding:1.5rem clamp(.75rem,3vw,2.5rem) 3rem;background:var(--page);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;overflow-wrap:anywhere}
main,header{max-width:1240px;margin:0 auto}
h1{font-size:1.6rem;line-height:1.25;margin:0}
h2{font-size:1.2rem;margin:2.2rem 0 .7rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:0 0 .35rem;font-weight:600}
.sub{color:var(--soft);margin:.25rem 0 0}
.blocks{display:grid;grid-template-columns:repeat(6,minmax(0,1fr));gap:1rem}
.blocks>*{grid-column:1/-1;min-width:0}
@media (min-width:700px){.w2,.w3{grid-column:span 3}.lone{grid-column:1/-1}}
@media (min-width:1060px){.w2{grid-column:span 2}.w3{grid-column:span 3}}
.blocks>*>figure,.blocks>*>.panel,.choice{height:100%}
@media (min-width:700px){.w6>figure,.w6>.choice figure{display:grid;align-content:start;
grid-template-columns:minmax(0,33rem) minmax(14rem,1fr);gap:0 1.5rem}
.w6 h3{grid-column:1/-1}.w6 .plot{grid-column:1;grid-row:2/span 4;max-width:none}
.w6 .legend,.w6 figcaption,.w6 details{grid-column:2;align-self:start}}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,10rem),1fr));gap:1px;margin:0;overflow:hidden;
background:var(--line);border:1px solid var(--line);border-radius:8px}
.figures>div{background:var(--card);padding:.8rem 1rem}.figures dt{color:var(--soft);font-size:.875rem}
.figures dd{margin:0;font-size:1.9rem;line-height:1.25;font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}
.figures dd.note{font-size:.82rem;font-weight:400;color:var(--soft);white-space:normal}
.said{margin:0}
figure,.panel{margin:0;padding:.9rem 1rem;background:var(--card);border:1px solid var(--line);border-radius:8px;min-width:0}
figcaption,.caption{color:var(--soft);font-size:.875rem;margin:.4rem 0 0}
.plot{display:block;width:100%;max-width:530px;height:auto;margin:.2rem auto 0;font-size:13px;touch-action:pan-y}
.plot text{fill:var(--fg)}
.plot .tick,.plot .none{fill:var(--soft)}
.plot .axis{font-weight:500}
.plot .m{text-anchor:middle}.plot .e{text-anchor:end}
.grid{stroke:var(--line);stroke-width:1;fill:none}
.frame{fill:none;stroke:var(--line)}
.l{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
path.m{fill:var(--c);stroke:var(--c);stroke-width:1.3}
.bar{fill:none;stroke:var(--c);stroke-width:1.2}
.band{fill:var(--c);fill-opacity:.18;stroke:none}
.predicted .l{stroke-dasharray:7 5}.published .l{stroke-dasharray:.1 4.5;stroke-width:2.4}
.predicted path.m,.published path.m{fill:var(--card)}
.other .l{stroke:var(--soft);stroke-width:1;stroke-opacity:.45}.other path.m{fill:var(--soft);stroke:none;fill-opacity:.45}
.s.hot .l{stroke:var(--fg);stroke-width:3;stroke-opacity:1}
.ideal .l{stroke:var(--soft);stroke-dasharray:10 4 2 4;stroke-width:1.3}
.part{fill:var(--c)}
.hatch{pointer-events:none}.ink{stroke:var(--card);fill:none;stroke-width:1.1;stroke-opacity:.75}.dot{fill:var(--card);fill-opacity:.8}
.cell{fill:var(--k0)}.count{font-size:11px}.count.on{fill:var(--on)!important}
.off{display:none}
.choice{min-width:0;padding:.9rem 1rem;background:var(--card);border:1px solid var(--line);border-radius:8px}
.choice figure{border:0;padding:0}.tabs{display:flex;flex-wrap:wrap;align-items:center;gap:.25rem;margin:0 0 .8rem}
.tabs span{color:var(--soft);font-size:.85rem;margin-right:.3rem}
.tabs button{font:inherit;font-size:.85rem;color:var(--soft);background:var(--card);border:1px solid var(--line);border-radius:99px;
padding:.1rem .8rem;cursor:pointer}.tabs button[aria-pressed=true]{color:var(--bg);background:var(--fg);border-color:var(--fg)}
.guide{stroke:var(--soft);stroke-dasharray:3 3}.spot{fill:var(--c);stroke:var(--card);stroke-width:1.5}
.legend{display:flex;flex-wrap:wrap;gap:.15rem .4rem;margin:0;padding:0;list-style:none;font-size:.85rem}
.legend button,.legend span{display:inline-flex;align-items:center;gap:.4rem;font:inherit;color:inherit;background:none;
border:1px solid transparent;border-radius:6px;padding:.1rem .35rem;text-align:left}
.legend button{cursor:pointer}.legend button:hover,.legend button:focus-visible{border-color:var(--line)}
.legend button[aria-pressed=false]{opacity:.45;text-decoration:line-through}
.swatch{width:34px;height:12px;flex:none}.swatch.wide{width:80px}
.legend.common{margin:0 0 .8rem}
/* A shade at the edge behind which a table goes on. */
.scroll{overflow-x:auto;background:linear-gradient(90deg,var(--card) 40%,transparent) 0 0/3rem 100%,
linear-gradient(270deg,var(--card) 40%,transparent) 100% 0/3rem 100%,linear-gradient(90deg,var(--shade),transparent) 0 0/1.1rem 100%,
linear-gradient(270deg,var(--shade),transparent) 100% 0/1.1rem 100%;background-repeat:no-repeat;
background-attachment:local,local,scroll,scroll}
.panel table,.w6 table{width:100%}
.tall{max-height:27rem;overflow:auto}.tall thead th{position:sticky;top:0;background:var(--card);box-shadow:0 1px var(--line)}
td.b{font-weight:700}td .swatch{margin-right:.5rem;vertical-align:middle}
tr[data-r]{cursor:default}tr[data-r] td:first-child{white-space:nowrap}tr[data-r]:hover td,tr.hot td{background:color-mix(in srgb,var(--k0) 12%,transparent)}
.sort{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:0;cursor:pointer}
.sort:hover{text-decoration:underline}th[aria-sort=ascending] .sort::after{content:" \2191"}
th[aria-sort=descending] .sort::after{content:" \2193"}
.fold{margin:0;font-size:inherit}.fold>summary{margin:2.2rem 0 .7rem;padding-bottom:.3rem;border-bottom:1px solid var(--line);color:inherit}
.fold>summary h2{display:inline;border:0}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top;overflow-wrap:normal}
th{font-weight:600;white-space:nowrap}th:first-child,td:first-child{text-align:left;padding-left:0}
td{white-space:nowrap}td.t{text-align:left;white-space:normal;min-width:5.2rem;max-width:26rem;overflow-wrap:break-word}
td:first-child{white-space:normal;min-width:6.5rem}th.t{text-align:left}
details{margin-top:.5rem;font-size:.875rem}summary{cursor:pointer;color:var(--soft)}
details .scroll{max-height:20rem;overflow:auto;margin-top:.4rem}
.pictures{display:flex;flex-wrap:wrap;gap:.9rem;margin:0;padding:0;list-style:none;font-size:.8rem;line-height:1.35}
.pictures li{width:8.2rem;overflow-wrap:anywhere}.pictures img{display:block;margin-bottom:.2rem;max-width:100%}
.pictures b,.pictures span{display:block}.pictures span{color:var(--soft)}
pre{margin:0;white-space:pre-wrap;font:.875rem/1.6 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
.copy{float:right;font:inherit;font-size:.8rem;color:var(--soft);background:none;border:1px solid var(--line);border-radius:6px;
padding:.1rem .5rem;cursor:pointer}
#tip{position:fixed;z-index:9;left:0;top:0;visibility:hidden;pointer-events:none;background:var(--fg);color:var(--bg);
padding:.35rem .6rem;border-radius:6px;font-size:.82rem;line-height:1.4;white-space:pre-line;max-width:min(22rem,90vw);
font-variant-numeric:tabular-nums}
@media (max-width:520px){h1{font-size:1.3rem}figure,.panel,.choice{padding:.7rem .6rem}
.figures{grid-template-columns:1fr 1fr}.figures>div{padding:.6rem .7rem}.figures dd{font-size:1.4rem}}
)css";
}

// A curve that falls, in the colours of the page.
std::string_view PageIcon() {
  return "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
         "%3Crect width='32' height='32' rx='7' fill='%230072b2'/%3E%3Cpath d='M7 7v18h18M11 9c2 "
         "8 6 11 14 12' fill='none' stroke='white' stroke-width='2.6' stroke-linecap='round'/%3E"
         "%3C/svg%3E";
}

std::string_view PagePatterns() {
  return R"svg(<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="p1" width="6" height="6" patternUnits="userSpaceOnUse"><path class="ink" d="M-1,1l2,-2M0,6l6,-6M5,7l2,-2"/></pattern>
<pattern id="p2" width="5" height="5" patternUnits="userSpaceOnUse"><circle class="dot" cx="2.5" cy="2.5" r="1.1"/></pattern>
<pattern id="p3" width="6" height="6" patternUnits="userSpaceOnUse"><path class="ink" d="M-1,5l2,2M0,0l6,6M5,-1l2,2"/></pattern>
<pattern id="p4" width="5" height="5" patternUnits="userSpaceOnUse"><path class="ink" d="M0,2.5h5"/></pattern>
</defs></svg>)svg";
}

}  // namespace trireme
