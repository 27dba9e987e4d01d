#include "record/page/page_style.h"

namespace trireme {

// The colours are those of Okabe and Ito, made darker or lighter for enough contrast.
std::string_view PageStyle() {
  return R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#59636e;--line:#d8dee4;--card:#fff;--page:#f6f8fa;
--k0:#0072b2;--k1:#d55e00;--k2:#009e73;--k3:#b8558f;--k4:#a87500;--k5:#3a9bd1;--k6:#6b4fa0;--k7:#6f6f00;--on:#fff}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6eaee;--soft:#9aa5b1;--line:#343c46;--card:#1b2027;--page:#14181d;
--k0:#5ab4f0;--k1:#ff8f4d;--k2:#3ecf9f;--k3:#e79ac6;--k4:#f0b840;--k5:#9ad6fa;--k6:#bda7ec;--k7:#cfcf5a;--on:#0d1116}}
@media print{:root{--bg:#fff;--fg:#000;--soft:#444;--line:#ccc;--card:#fff;--page:#fff;
--k0:#0072b2;--k1:#d55e00;--k2:#009e73;--k3:#b8558f;--k4:#a87500;--k5:#3a9bd1;--k6:#6b4fa0;--k7:#6f6f00;--on:#fff}
#tip,.copy,.tabs{display:none!important}figure,.choice,tr{break-inside:avoid}h2,h3{break-after:avoid}body{padding:0!important}
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
.blocks{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,25rem),1fr));gap:1rem;align-items:start}
.blocks>.full{grid-column:1/-1}
figure,.panel{margin:0;padding:.9rem 1rem;background:var(--card);border:1px solid var(--line);border-radius:8px;min-width:0}
figcaption,.caption{color:var(--soft);font-size:.875rem;margin:.4rem 0 0}
.plot{display:block;width:100%;max-width:560px;height:auto;margin:.2rem auto 0;font-size:13px;touch-action:pan-y}
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
.ideal .l{stroke:var(--soft);stroke-dasharray:10 4 2 4;stroke-width:1.3}
.part{fill:var(--c)}
.hatch{pointer-events:none}.ink{stroke:var(--card);fill:none;stroke-width:1.1;stroke-opacity:.75}.dot{fill:var(--card);fill-opacity:.8}
.cell{fill:var(--k0)}.count{font-size:11px}.count.on{fill:var(--on)!important}
.off{display:none}
.choice{min-width:0;padding:.9rem 1rem;background:var(--card);border:1px solid var(--line);border-radius:8px}
.choice figure{border:0;padding:0}.tabs{display:flex;flex-wrap:wrap;gap:.25rem;margin:0 0 .5rem}
.tabs button{font:inherit;font-size:.82rem;color:var(--soft);background:none;border:1px solid var(--line);border-radius:99px;
padding:.05rem .7rem;cursor:pointer}.tabs button[aria-pressed=true]{color:var(--bg);background:var(--fg);border-color:var(--fg)}
.guide{stroke:var(--soft);stroke-dasharray:3 3}.spot{fill:var(--c);stroke:var(--card);stroke-width:1.5}
.legend{display:flex;flex-wrap:wrap;gap:.15rem .4rem;margin:0;padding:0;list-style:none;font-size:.85rem}
.legend button,.legend span{display:inline-flex;align-items:center;gap:.4rem;font:inherit;color:inherit;background:none;
border:1px solid transparent;border-radius:6px;padding:.1rem .35rem;text-align:left}
.legend button{cursor:pointer}.legend button:hover,.legend button:focus-visible{border-color:var(--line)}
.legend button[aria-pressed=false]{opacity:.45;text-decoration:line-through}
.swatch{width:34px;height:12px;flex:none}.swatch.wide{width:80px}
.scroll{overflow-x:auto}
.panel:not(.full) table{width:100%}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top;overflow-wrap:normal}
th{font-weight:600;white-space:nowrap}th:first-child,td:first-child{text-align:left;padding-left:0}
td{white-space:nowrap}td.t{text-align:left;white-space:normal;max-width:26rem;overflow-wrap:break-word}
td:first-child{white-space:normal}th.t{text-align:left}
details{margin-top:.5rem;font-size:.875rem}summary{cursor:pointer;color:var(--soft)}
details .scroll{max-height:20rem;overflow:auto;margin-top:.4rem}
pre{margin:0;white-space:pre-wrap;font:.875rem/1.6 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
.copy{float:right;font:inherit;font-size:.8rem;color:var(--soft);background:none;border:1px solid var(--line);border-radius:6px;
padding:.1rem .5rem;cursor:pointer}
#tip{position:fixed;z-index:9;left:0;top:0;visibility:hidden;pointer-events:none;background:var(--fg);color:var(--bg);
padding:.35rem .6rem;border-radius:6px;font-size:.82rem;line-height:1.4;white-space:pre-line;max-width:min(22rem,90vw);
font-variant-numeric:tabular-nums}
@media (max-width:520px){h1{font-size:1.3rem}figure,.panel,.choice{padding:.7rem .6rem}}
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

// Names and values reach the page as text only (textContent), never as markup.
std::string_view PageScript() {
  return R"js(
(function(){'use strict';
var tip=document.getElementById('tip'),NS='http://www.w3.org/2000/svg';
function numbers(s){return s.trim()?s.trim().split(' ').map(Number):[]}
function show(v,digits){if(Number.isInteger(v)||Math.abs(v)>=1e4&&Math.abs(v)<1e15)return Math.round(v).toLocaleString('en-US');return String(Number(v.toPrecision(digits||5)))}
function place(e,text){tip.textContent=text;tip.style.visibility='visible';
var w=tip.offsetWidth,h=tip.offsetHeight,x=e.clientX+14,y=e.clientY+14;
if(x+w>innerWidth-6)x=Math.max(6,e.clientX-w-14);if(y+h>innerHeight-6)y=Math.max(6,e.clientY-h-14);
tip.style.left=x+'px';tip.style.top=y+'px'}
function hide(){tip.style.visibility='hidden';document.querySelectorAll('.guide,.spot').forEach(function(n){n.remove()})}
function at(v,s,from,size){var p=s[2]?Math.log(v/s[0])/Math.log(s[1]/s[0]):(v-s[0])/(s[1]-s[0]);return from+p*size}
function series(svg){if(svg._s)return svg._s;var b=numbers(svg.dataset.box),sx=numbers(svg.dataset.xs),sy=numbers(svg.dataset.ys);
svg._s=Array.from(svg.querySelectorAll('g.s')).map(function(g){var x=numbers(g.dataset.x),y=numbers(g.dataset.y);
return{g:g,x:x,y:y,px:x.map(function(v){return at(v,sx,b[0],b[2])}),py:y.map(function(v){return at(v,sy,b[1]+b[3],-b[3])})}});return svg._s}
function nearest(a,v){var best=-1,d=1e9;for(var i=0;i<a.length;i++){var k=Math.abs(a[i]-v);if(k<d){d=k;best=i}}return best}
function mark(svg,tag,attributes,cls){var n=document.createElementNS(NS,tag);for(var k in attributes)n.setAttribute(k,attributes[k]);
n.setAttribute('class',cls);n.style.pointerEvents='none';svg.appendChild(n)}
function line(e,svg){hide();var r=svg.getBoundingClientRect(),vx=(e.clientX-r.left)/r.width*svg.viewBox.baseVal.width;
var b=numbers(svg.dataset.box),fig=svg.closest('figure'),found=[],best=null;
series(svg).forEach(function(s){if(s.g.classList.contains('off')||!s.x.length)return;var i=nearest(s.px,vx),d=Math.abs(s.px[i]-vx);
found.push({s:s,i:i,d:d});if(!best||d<best.d)best={s:s,i:i,d:d}});
if(!best)return;var px=best.s.px[best.i],text=fig.dataset.x+': '+show(best.s.x[best.i],7);
mark(svg,'path',{d:'M'+px+','+b[1]+'v'+b[3]},'guide');
found.forEach(function(f){if(Math.abs(f.s.px[f.i]-px)>6)return;var name=fig.querySelector('.legend [data-s="'+f.s.g.dataset.s+'"]');
text+='\n'+(name?name.textContent.trim():'')+': '+show(f.s.y[f.i]);
mark(svg,'circle',{cx:f.s.px[f.i],cy:f.s.py[f.i],r:4.2},'spot '+f.s.g.classList[1])});
place(e,text)}
function choose(name){document.querySelectorAll('.choice').forEach(function(c){
var buttons=Array.from(c.querySelectorAll('.tabs button')),i=buttons.findIndex(function(b){return b.textContent===name});
if(i<0)return;buttons.forEach(function(b,k){b.setAttribute('aria-pressed',String(k===i))});
Array.from(c.querySelectorAll('.of')).forEach(function(o,k){o.classList.toggle('off',k!==i)})})}
function move(e){var t=e.target;if(!t.closest)return;var svg=t.closest('svg.line');if(svg){line(e,svg);return}
var n=t.closest('[data-tip]');if(n){place(e,n.dataset.tip)}else hide()}
document.addEventListener('pointermove',move);document.addEventListener('pointerdown',move);
document.addEventListener('scroll',hide,{passive:true});
document.addEventListener('click',function(e){var b=e.target.closest?e.target.closest('button'):null;if(!b)return;
if(b.classList.contains('copy')){var text=b.parentNode.querySelector('pre').textContent;
if(navigator.clipboard)navigator.clipboard.writeText(text).then(function(){b.textContent='copied'},function(){});return}
if(b.parentNode.classList.contains('tabs')){choose(b.textContent);return}
if(b.dataset.s===undefined)return;var on=b.getAttribute('aria-pressed')==='true';b.setAttribute('aria-pressed',String(!on));
b.closest('figure').querySelectorAll('g.s[data-s="'+b.dataset.s+'"]').forEach(function(g){g.classList.toggle('off',on)})});
})();
)js";
}

// What was switched off or opened stays so when the content is replaced.
std::string_view LiveScript() {
  return R"js(
(function(){'use strict';
var main=document.querySelector('main'),note=document.getElementById('live'),seen='';
function key(n){var f=n.closest('figure'),h=f?f.querySelector('h3'):null;return(h?h.textContent:'')+'|'+n.textContent}
function swap(html){var off={},open={},chosen=main.querySelector('.tabs button[aria-pressed=true]');
main.querySelectorAll('.legend button[aria-pressed=false]').forEach(function(b){off[key(b)]=1});
main.querySelectorAll('details[open]>summary').forEach(function(s){open[key(s)]=1});
main.innerHTML=html;
if(chosen)Array.from(main.querySelectorAll('.tabs button')).some(function(b){if(b.textContent!==chosen.textContent)return false;
b.click();return true});
main.querySelectorAll('.legend button').forEach(function(b){if(off[key(b)])b.click()});
main.querySelectorAll('details>summary').forEach(function(s){if(open[key(s)])s.parentNode.open=true})}
function ask(){fetch('/data',{cache:'no-store'}).then(function(r){if(!r.ok)throw 0;return r.json()}).then(function(d){
if(d.html!==seen){seen=d.html;swap(d.html)}note.textContent=d.state;document.title=d.title;setTimeout(ask,d.over?10000:2000)},
function(){note.textContent='the watching program has ended';setTimeout(ask,5000)})}
setTimeout(ask,1000)})();
)js";
}

}  // namespace trireme
