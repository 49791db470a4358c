// What a pointer does on the figures of the page: values, lines that are hidden, zoom. Without it they are as drawn.
// A figure's data-charts say of each of its axes where they lie and which elements are which line (drawing.py).
const SVG = 'http://www.w3.org/2000/svg', NEAR = 28, DRAGGED = 8, TICKS = 7;
const narrow = matchMedia('(max-width: 40rem)');
const hint = document.body.appendChild(document.createElement('div'));
hint.className = 'hint';
hint.hidden = true;

const make = (name, attributes, parent) => {
  const made = parent.appendChild(document.createElementNS(SVG, name));
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const short = value => String(Math.abs(value) >= 1e4 ? Math.round(value) : +value.toPrecision(4));

// An axis in the numbers that it measures: `at` a share of its length, from its low end.
const warped = {linear: [x => x, x => x], log: [Math.log10, x => 10 ** x]};
const valueAt = (axis, share) => {
  const [there, back] = warped[axis.scale], [low, high] = axis.ends.map(there);
  return back(low + share * (high - low));
};
const shareOf = (axis, value) => {
  const [there] = warped[axis.scale], [low, high] = axis.ends.map(there);
  return (there(value) - low) / (high - low);
};
const named = (axis, value) => {
  const near = axis.names.find(([place]) => Math.abs(place - value) < 0.45);
  return near ? near[1] : short(value);
};

class Chart {
  constructor(svg, said) {
    Object.assign(this, said, {svg, view: said.box, hidden: new Set()});
    this.measures = this.x.scale in warped && this.y.scale in warped;
  }

  find(id) { return document.getElementById(`${this.svg.dataset.name}-${id}`); }

  // Places of a line's points in the figure, as they were drawn.
  get points() {
    const found = {};
    for (const [label, ids] of Object.entries(this.lines)) found[label] = ids.flatMap(id => {
      const line = id.includes('-line-') && this.find(id), marks = line ? [...line.querySelectorAll('use')] : [];
      const placed = marks.map(mark => ['x', 'y'].map(side => +mark.getAttribute(side)));
      const paths = marks.length || !line ? [] : [...line.querySelectorAll(':scope > path')];
      const drawn = paths.flatMap(path => [...path.getAttribute('d').matchAll(/[ML] (\S+) (\S+)/g)]);
      return [...placed, ...drawn.map(([, x, y]) => [+x, +y])].filter(at => this.holds(at, this.box));
    });
    Object.defineProperty(this, 'points', {value: found});
    return found;
  }

  holds([x, y], [left, top, width, height], more = 1) {
    return x >= left - more && x <= left + width + more && y >= top - more && y <= top + height + more;
  }

  // A place in the figure as it is shown now, and as it was drawn.
  shown([x, y]) {
    const [left, top, width, height] = this.box, [a, b, w, h] = this.view;
    return [left + (x - a) / w * width, top + (y - b) / h * height];
  }

  drawn([x, y]) {
    const [left, top, width, height] = this.box, [a, b, w, h] = this.view;
    return [a + (x - left) / width * w, b + (y - top) / height * h];
  }

  value(side, place) {
    const [left, top, width, height] = this.box;
    const share = side === 'x' ? (place[0] - left) / width : 1 - (place[1] - top) / height;
    return valueAt(this[side], share);
  }

  // The nearest point of any line that is seen, and those of other lines at the same place.
  near(pointer, reach) {
    let best = null;
    const seen = Object.entries(this.points).filter(([label]) => !this.hidden.has(label));
    for (const [label, points] of seen) for (const point of points) {
      const at = this.shown(point), far = Math.hypot(at[0] - pointer[0], at[1] - pointer[1]);
      if (far < (best?.far ?? reach) && this.holds(at, this.box)) best = {label, point, at, far};
    }
    if (!best) return null;
    const beside = seen.flatMap(([label, points]) => {
      const same = points.find(([x]) => Math.abs(x - best.point[0]) < 0.05);
      return same && label !== best.label ? [[label, same]] : [];
    });
    return {...best, beside};
  }

  // How high and how low the lines that are seen come between two places.
  reach(left, right) {
    const seen = Object.entries(this.points).filter(([label]) => !this.hidden.has(label));
    const found = seen.flatMap(([, points]) => points.filter(([x]) => x >= left && x <= right).map(([, y]) => y));
    const [top, bottom] = [Math.min(...found), Math.max(...found)], room = 0.08 * (bottom - top);
    return bottom > top ? [top - room, bottom + room] : null;
  }

  toggle(label, hide) {
    this.hidden[hide ? 'add' : 'delete'](label);
    for (const id of this.lines[label] ?? []) this.find(id).style.display = hide ? 'none' : '';
  }

  // The drawn lines go into a window of their own, so that only they grow.
  get window() {
    const [x, y, width, height] = this.box, group = this.find(this.id);
    const elements = [...Object.values(this.lines).flat(), ...this.others].map(id => this.find(id)).filter(Boolean);
    const opened = make('svg', {class: 'plot', x, y, width, height, preserveAspectRatio: 'none'}, group);
    group.insertBefore(opened, this.find(this.ticks[1])?.nextSibling ?? null);
    const inside = elements.sort((a, b) => (a.compareDocumentPosition(b) & 4 ? -1 : 1));
    for (const element of inside) {
      for (const one of [element, ...element.querySelectorAll('[clip-path]')]) one.removeAttribute('clip-path');
      opened.append(element);
    }
    Object.defineProperty(this, 'window', {value: opened});
    return opened;
  }

  zoom(view) {
    this.view = view;
    const whole = view === this.box, [, , width, height] = this.box, shut = whole ? '' : 'none';
    this.window.setAttribute('viewBox', view.join(' '));
    for (const mark of this.window.querySelectorAll('[id*="-line-"] use')) {  // a point keeps its size
      const [x, y] = ['x', 'y'].map(side => mark.getAttribute(side));
      mark.setAttribute('transform', `translate(${x} ${y}) scale(${view[2] / width} ${view[3] / height}) translate(${-x} ${-y})`);
    }
    const ticks = this.ticks.flatMap(id => [...(this.find(id)?.children ?? [])]).filter(x => /tick_/.test(x.id));
    for (const one of [...ticks, ...this.fixed.map(id => this.find(id))]) if (one) one.style.display = shut;
    this.find(this.id).querySelector(':scope > .ticks')?.remove();
    if (!whole && this.measures) this.rule();
  }

  // Ticks of the part that is seen.
  rule() {
    const [left, top, width, height] = this.box, drawn = make('g', {class: 'ticks'}, this.find(this.id));
    for (const side of ['x', 'y']) {
      const axis = this[side], across = side === 'x', [a, b, w, h] = this.view;
      const ends = (across ? [[a, 0], [a + w, 0]] : [[0, b + h], [0, b]]).map(place => this.value(side, place));
      const places = axis.names.length ? axis.names : rounded(...ends).map(value => [value, short(value)]);
      for (const [value, text] of places) {
        const share = shareOf(axis, value), [x, y] = this.shown(
          [this.box[0] + share * width, top + (1 - share) * height]);
        if (!this.holds(across ? [x, top] : [left, y], this.box, 0.01)) continue;
        const line = across ? {x1: x, x2: x, y1: top, y2: top + height} : {x1: left, x2: left + width, y1: y, y2: y};
        make('line', line, drawn);
        const place = across ? {x, y: top + height + 13, 'text-anchor': 'middle'}
          : axis.right ? {x: left + width + 5, y: y + 3.5} : {x: left - 5, y: y + 3.5, 'text-anchor': 'end'};
        make('text', place, drawn).textContent = text;
      }
    }
  }
}

const rounded = (low, high) => {
  const step = 10 ** Math.floor(Math.log10((high - low) / TICKS));
  const wide = [1, 2, 5, 10].map(times => times * step).find(size => (high - low) / size <= TICKS) ?? 10 * step;
  const first = Math.ceil(low / wide - 1e-9);
  return Array.from({length: Math.max(0, Math.floor(high / wide + 1e-9) - first + 1)}, (_, n) => (first + n) * wide);
};

const colourOf = element => element?.outerHTML.match(/(?:stroke|fill): (var\([^)]*\)|#\w{6})/)?.[1] ?? 'currentColor';

for (const box of document.querySelectorAll('.drawing')) {
  const svg = box.querySelector('svg'), charts = JSON.parse(svg.dataset.charts).map(said => new Chart(svg, said));
  const figure = box.closest('figure'), legend = svg.querySelector('[id*="-legend_"]');
  const labels = [...new Set(charts.flatMap(chart => Object.keys(chart.lines)))];

  // The legend as buttons, in place of the drawn one below the axes.
  if (legend && labels.length > 1) {
    const keys = document.createElement('div'), seen = svg.viewBox.baseVal;
    keys.className = 'keys';
    for (const label of labels) {
      const key = keys.appendChild(document.createElement('button')), chart = charts.find(x => label in x.lines);
      const line = key.appendChild(document.createElement('i')), drawn = chart.find(chart.lines[label][0]);
      line.style.borderTopColor = colourOf(drawn);
      if (/stroke-dasharray/.test(drawn?.outerHTML)) line.style.borderTopStyle = 'dashed';
      key.append(label.trim());
      key.type = 'button';
      key.setAttribute('aria-pressed', 'true');
      key.addEventListener('click', () => {
        const hide = key.getAttribute('aria-pressed') === 'true';
        key.setAttribute('aria-pressed', String(!hide));
        for (const one of charts) one.toggle(label, hide);
      });
    }
    const top = legend.getBBox().y;
    legend.style.display = 'none';
    if (top > 0) svg.setAttribute('viewBox', `0 0 ${seen.width} ${top}`);
    box.before(keys);
  }

  const whole = document.createElement('button');
  whole.type = 'button';
  whole.className = 'whole';
  whole.textContent = 'Whole figure';
  whole.hidden = true;
  figure.querySelector('figcaption').append(whole);
  const reset = () => {
    for (const chart of charts) if (chart.view !== chart.box) chart.zoom(chart.box);
    whole.hidden = true;
  };
  whole.addEventListener('click', reset);

  const listen = (picture, own) => {
    let from = null, frame = null;
    const place = event => {
      const {x, y} = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
      return [x, y];
    };
    picture.addEventListener('pointermove', event => {
      const at = place(event), scale = picture.getScreenCTM().a;
      if (from) {
        const [x, y] = [0, 1].map(side => Math.min(from.at[side], at[side]));
        const [width, height] = [0, 1].map(side => Math.abs(from.at[side] - at[side]));
        frame ??= make('rect', {class: 'frame'}, picture);
        for (const [key, value] of Object.entries({x, y, width, height})) frame.setAttribute(key, value);
        hint.hidden = true;
        return;
      }
      let best = null;
      for (const chart of own) if (chart.measures) {
        const found = chart.holds(at, chart.box, 4) && chart.near(at, NEAR / scale);
        if (found && found.far < (best?.far ?? Infinity)) best = {...found, chart};
      }
      hint.hidden = !best;
      if (!best) return;
      const {chart} = best, x = named(chart.x, chart.value('x', best.point));
      const lines = [[best.label, best.point], ...best.beside].map(
        ([label, point]) => `${label.trim()}: ${named(chart.y, chart.value('y', point))}`);
      hint.textContent = [`${chart.x.name || charts.at(-1).x.name} ${x}`.trim(), ...lines].join('\n');
      const across = Math.min(event.clientX + 14, innerWidth - hint.offsetWidth - 8);
      hint.style.transform = `translate(${across}px, ${Math.max(8, event.clientY - hint.offsetHeight - 10)}px)`;
    });
    picture.addEventListener('pointerdown', event => {
      const at = place(event), chart = own.find(one => one.holds(at, one.box, 4));
      if (!chart || event.button) return;
      from = {at, chart};
      picture.setPointerCapture(event.pointerId);
    });
    const end = event => {
      const {at, chart} = from ?? {}, to = place(event), scale = picture.getScreenCTM().a;
      frame?.remove();
      from = frame = null;
      if (!chart || event.type === 'pointercancel') return;
      const [left, top, width, height] = chart.box;
      const cut = (side, low, size) => {
        const ends = [at[side], to[side]].map(x => Math.min(Math.max(x, low), low + size)).sort((a, b) => a - b);
        return (ends[1] - ends[0]) * scale < DRAGGED ? null : ends;
      };
      const across = cut(0, left, width), along = cut(1, top, height);
      if (!across && !along) return;
      const low = chart.drawn([(across ?? [left])[0], (along ?? [top])[0]]);
      const high = chart.drawn([(across ?? [0, left + width])[1], (along ?? [0, top + height])[1]]);
      if (!along) [low[1], high[1]] = chart.reach(low[0], high[0]) ?? [low[1], high[1]];
      const view = [...low, high[0] - low[0], high[1] - low[1]];
      for (const one of charts) if (String(one.box) === String(chart.box)) one.zoom(view);  // two scales, one place
      whole.hidden = false;
    };
    picture.addEventListener('pointerup', end);
    picture.addEventListener('pointercancel', end);
    picture.addEventListener('pointerleave', () => { hint.hidden = true; });
    picture.addEventListener('dblclick', reset);
  };
  listen(svg, charts);

  // On a phone each panel is as wide as the window, one below the other.
  if (charts.length > 1 && svg.viewBox.baseVal.width > 500) {
    const parts = [];
    const fold = () => {
      if (narrow.matches && !parts.length) for (const chart of charts) {
        const size = chart.find(chart.id).getBBox();
        const part = make('svg', {class: 'part', viewBox: [size.x, size.y, size.width, size.height].join(' ')}, box);
        make('use', {href: `#${svg.dataset.name}-${chart.id}`}, part);
        listen(part, charts.filter(one => String(one.box) === String(chart.box)));
        parts.push(part);
      }
      box.classList.toggle('parted', narrow.matches);
    };
    narrow.addEventListener('change', fold);
    fold();
  }
}
