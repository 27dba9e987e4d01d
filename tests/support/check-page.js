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

  function checkLegend(title, figure) {
    if (!figure.querySelector('.legend li')) return find(title + ': no legend');
    var button = figure.querySelector('.legend button');
    if (!button) return;
    var series = figure.querySelector('g.s[data-s="' + button.dataset.s + '"]');
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
    if (!figure.querySelector('details table td')) find(title + ': no table');
    checkTexts(title, svg);
    checkHover(title, svg);
    checkLegend(title, figure);
  }

  function checkTabs() {
    document.querySelectorAll('.choice').forEach(function (choice) {
      var buttons = Array.from(choice.querySelectorAll('.tabs button'));
      buttons.forEach(function (button, i) {
        button.click();
        var shown = Array.from(choice.querySelectorAll('.of')).map(visible);
        if (shown.filter(Boolean).length !== 1 || !shown[i]) find('the choice ' + button.textContent + ' does not show its chart');
        choice.querySelectorAll('figure').forEach(function (f) { if (visible(f)) checkFigure(f); });
      });
      if (buttons[0]) buttons[0].click();
    });
  }

  addEventListener('load', function () {
    document.querySelectorAll('figure').forEach(function (f) { if (!f.closest('.choice')) checkFigure(f); });
    checkTabs();
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
