#include "report/page/page_style.h"

namespace trireme {

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
var vy=(e.clientY-r.top)/r.height*svg.viewBox.baseVal.height;
found=found.filter(function(f){return Math.abs(f.s.px[f.i]-px)<=6});
if(found.length>8){found.sort(function(a,b){return Math.abs(a.s.py[a.i]-vy)-Math.abs(b.s.py[b.i]-vy)});found.length=8}
found.forEach(function(f){var name=fig.querySelector('.legend [data-s="'+f.s.g.dataset.s+'"]');
text+='\n'+(name?name.textContent.trim():f.s.g.dataset.n)+': '+show(f.s.y[f.i]);
mark(svg,'circle',{cx:f.s.px[f.i],cy:f.s.py[f.i],r:4.2},'spot '+f.s.g.classList[1])});
place(e,text)}
function choose(name){document.querySelectorAll('.choice').forEach(function(c){
var i=c.dataset.names.split('\n').indexOf(name);if(i<0)return;
Array.from(c.querySelectorAll('.of')).forEach(function(o,k){o.classList.toggle('off',k!==i)})});
document.querySelectorAll('.tabs').forEach(function(t){var buttons=Array.from(t.querySelectorAll('button'));
if(!buttons.some(function(b){return b.textContent===name}))return;
buttons.forEach(function(b){b.setAttribute('aria-pressed',String(b.textContent===name))})})}
function hot(r){document.querySelectorAll('.hot').forEach(function(n){n.classList.remove('hot')});if(r===undefined)return;
document.querySelectorAll('g.s[data-r="'+r+'"],tr[data-r="'+r+'"]').forEach(function(n){n.classList.add('hot');
if(n.tagName==='g'&&n.parentNode.lastElementChild!==n)n.parentNode.appendChild(n)})}
function value(row,i){var c=row.cells[i],t=c?c.textContent.trim():'',v=parseFloat(t.replace(/,/g,''));
return{t:t,v:isNaN(v)?null:v,none:t===''||t==='-'}}
function sort(head){var table=head.closest('table'),i=head.cellIndex,body=table.tBodies[0],rows=Array.from(body.rows);
var up=head.getAttribute('aria-sort')==='descending';
Array.from(head.parentNode.cells).forEach(function(h){h.removeAttribute('aria-sort')});
head.setAttribute('aria-sort',up?'ascending':'descending');
rows.map(function(r){return{r:r,k:value(r,i)}}).sort(function(a,b){if(a.k.none||b.k.none)return a.k.none-b.k.none;
var d=a.k.v!==null&&b.k.v!==null?a.k.v-b.k.v:a.k.t.localeCompare(b.k.t,'en',{numeric:true});return up?d:-d})
.forEach(function(x){body.appendChild(x.r)})}
function move(e){var t=e.target;if(!t.closest)return;var svg=t.closest('svg.line');if(svg){line(e,svg);return}
var row=t.closest('tr[data-r]');hot(row?row.dataset.r:undefined);
var n=t.closest('[data-tip]');if(n){place(e,n.dataset.tip)}else hide()}
document.addEventListener('pointermove',move);document.addEventListener('pointerdown',move);
document.addEventListener('scroll',hide,{passive:true});
document.addEventListener('click',function(e){var b=e.target.closest?e.target.closest('button'):null;if(!b)return;
if(b.classList.contains('copy')){var text=b.parentNode.querySelector('pre').textContent;
if(navigator.clipboard)navigator.clipboard.writeText(text).then(function(){b.textContent='copied'},function(){});return}
if(b.parentNode.classList.contains('tabs')){choose(b.textContent);return}
if(b.classList.contains('sort')){sort(b.closest('th'));return}
if(b.dataset.r!==undefined){var was=b.getAttribute('aria-pressed')==='true',r=b.dataset.r;
document.querySelectorAll('.legend.common button').forEach(function(x){if(x.dataset.r===r)x.setAttribute('aria-pressed',String(!was))});
document.querySelectorAll(r==='others'?'g.s.other':'g.s[data-r="'+r+'"]').forEach(function(g){
if(!g.closest('figure').querySelector('.legend'))g.classList.toggle('off',was)});return}
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
function(){note.textContent='the watching program has stopped';setTimeout(ask,5000)})}
setTimeout(ask,1000)})();
)js";
}

}  // namespace trireme
