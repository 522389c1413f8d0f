// Zooms the figures that carry their data: by dragging, by buttons, and by keys.
"use strict";
(() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const numbers = text => text.split(" ").map(Number);

  // As tick_text() and axis_ticks() of src/figures/line_plot.cc.
  function tickText(value) {
    const size = Math.abs(value);
    const [divisor, unit] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"]
      : size >= 1e4 ? [1e3, "k"] : [1, ""];
    return String(Number((value / divisor).toPrecision(6))) + unit;
  }
  function axisTicks(low, high, count) {
    const rough = (high - low) / count;
    if (!(rough > 0) || !isFinite(rough)) return [];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find(factor => rough <= factor * power * 1.0001) || 10);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
      if (ticks.length >= 100) break;
      ticks.push(k === 0 ? 0 : k * step);
    }
    return ticks;
  }

  class Zoom {
    constructor(figure) {
      this.svg = figure.querySelector("svg");
      this.plot = figure.querySelector(".plot");
      this.data = JSON.parse(figure.querySelector("script").textContent);
      [this.left, this.right, this.top, this.bottom] = numbers(this.svg.dataset.frame);
      this.whole = numbers(this.svg.dataset.x);
      this.wholeY = numbers(this.svg.dataset.y);
      this.shown = [...this.whole];
      this.paths = [...this.svg.querySelectorAll("path.series")];
      this.addControls(figure);
      this.addPointer();
      this.plot.addEventListener("keydown", event => this.onKey(event));
    }

    addControls(figure) {
      const bar = document.createElement("div");
      bar.className = "zoom";
      const heading = figure.querySelector("h3, h4, h5").textContent;
      const actions = [["Zoom in", () => this.scale(0.5)], ["Zoom out", () => this.scale(2)],
        ["Earlier", () => this.move(-0.5)], ["Later", () => this.move(0.5)],
        ["Whole run", () => this.show(...this.whole)]];
      for (const [name, action] of actions) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = name;
        button.setAttribute("aria-label", `${name}: ${heading}`);
        button.addEventListener("click", action);
        bar.append(button);
      }
      this.status = document.createElement("output");
      this.status.setAttribute("aria-live", "polite");
      bar.append(this.status);
      this.plot.after(bar);
    }

    // Returns the x of a pointer in the units of the axis.
    at(event) {
      const box = this.svg.getBoundingClientRect();
      const pixel = (event.clientX - box.left) / box.width * this.svg.viewBox.baseVal.width;
      const part = (pixel - this.left) / (this.right - this.left);
      return this.shown[0] + Math.min(Math.max(part, 0), 1) * (this.shown[1] - this.shown[0]);
    }

    addPointer() {
      const mark = document.createElementNS(NAMESPACE, "rect");
      mark.setAttribute("class", "selection");
      mark.setAttribute("visibility", "hidden");
      this.svg.append(mark);
      let from = null;
      this.svg.addEventListener("pointerdown", event => {
        if (event.button === 0 && event.pointerType !== "touch") {
          from = this.at(event);
          this.svg.setPointerCapture(event.pointerId);
        }
      });
      this.svg.addEventListener("pointermove", event => {
        const to = this.at(event);
        this.describe(to);
        if (from === null) return;
        const [a, b] = [from, to].sort((x, y) => x - y).map(x => this.across(x));
        for (const [name, value] of [["x", a], ["width", b - a], ["y", this.top],
          ["height", this.bottom - this.top], ["visibility", "visible"]]) {
          mark.setAttribute(name, value);
        }
      });
      this.svg.addEventListener("pointerup", event => {
        const [a, b] = [from, this.at(event)].sort((x, y) => x - y);
        mark.setAttribute("visibility", "hidden");
        if (from !== null && this.across(b) - this.across(a) > 5) this.show(a, b);
        from = null;
      });
      this.svg.addEventListener("pointercancel", () => {
        from = null;
        mark.setAttribute("visibility", "hidden");
      });
      this.svg.addEventListener("dblclick", () => this.show(...this.whole));
    }

    onKey(event) {
      const action = {"+": () => this.scale(0.5), "=": () => this.scale(0.5),
        "-": () => this.scale(2), ArrowLeft: () => this.move(-0.25),
        ArrowRight: () => this.move(0.25), Escape: () => this.show(...this.whole)}[event.key];
      if (action && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        action();
      }
    }

    scale(factor) {
      const middle = (this.shown[0] + this.shown[1]) / 2;
      const half = (this.shown[1] - this.shown[0]) / 2 * factor;
      this.show(middle - half, middle + half);
    }

    move(part) {
      const width = this.shown[1] - this.shown[0];
      const from = Math.min(Math.max(this.shown[0] + part * width, this.whole[0]),
        this.whole[1] - width);
      this.show(from, from + width);
    }

    across(x) {
      return this.left + (x - this.shown[0]) / (this.shown[1] - this.shown[0])
        * (this.right - this.left);
    }

    show(from, to) {
      const [low, high] = this.whole;
      if (to - from < (high - low) * 1e-6) return;
      this.shown = [Math.max(from, low), Math.min(to, high)];
      this.draw();
      this.status.textContent = this.shown[0] === low && this.shown[1] === high ? "Whole run"
        : `Steps ${tickText(Math.round(this.shown[0]))} to ${tickText(Math.round(this.shown[1]))}`;
    }

    rangeOfY() {
      let low = Infinity, high = -Infinity;
      const whole = this.shown[0] === this.whole[0] && this.shown[1] === this.whole[1];
      if (whole) return this.wholeY;
      for (const series of this.data) {
        series.x.forEach((x, i) => {
          const y = series.y[i];
          if (y !== null && x >= this.shown[0] && x <= this.shown[1]) {
            low = Math.min(low, y);
            high = Math.max(high, y);
          }
        });
      }
      if (!(low <= high)) return this.wholeY;
      const pad = high > low ? (high - low) * 0.05 : Math.max(Math.abs(low) * 0.5, 0.5);
      return [low - pad, high + pad];
    }

    draw() {
      const [low, high] = this.rangeOfY();
      const down = y => this.bottom - (y - low) / (high - low) * (this.bottom - this.top);
      this.data.forEach((series, number) => {
        let path = "", pen = false;
        series.x.forEach((x, i) => {
          // One point beyond each end is drawn, so that lines go on to the border.
          const out = x < this.shown[0] && !(series.x[i + 1] >= this.shown[0])
            || x > this.shown[1] && !(series.x[i - 1] <= this.shown[1]);
          if (series.y[i] === null || out) {
            pen = false;
          } else {
            path += `${pen ? "L" : "M"}${this.across(x).toFixed(1)} ${down(series.y[i]).toFixed(1)}`;
            pen = true;
          }
        });
        this.paths[number].setAttribute("d", path);
        this.paths[number].setAttribute("clip-path", "url(#" + this.clip() + ")");
      });
      this.drawTicks(".x-ticks", axisTicks(...this.shown, 8), x => [this.across(x), this.bottom,
        this.across(x), this.bottom + 5, this.across(x), this.bottom + 19, "middle", "axis"]);
      this.drawTicks(".y-ticks", axisTicks(low, high, 6), y => [this.left, down(y), this.right,
        down(y), this.left - 8, down(y) + 4, "end", "grid"]);
      this.drawEvents();
    }

    // Returns the id of the clip path of this figure, which it makes at first.
    clip() {
      const id = "clip-" + this.svg.closest("figure").querySelector("[id]").id;
      if (!document.getElementById(id)) {
        const clip = document.createElementNS(NAMESPACE, "clipPath");
        clip.id = id;
        const box = document.createElementNS(NAMESPACE, "rect");
        for (const [name, value] of [["x", this.left], ["y", this.top],
          ["width", this.right - this.left], ["height", this.bottom - this.top]]) {
          box.setAttribute(name, value);
        }
        clip.append(box);
        this.svg.append(clip);
      }
      return id;
    }

    drawTicks(group, ticks, place) {
      const element = this.svg.querySelector(group);
      element.replaceChildren(...ticks.flatMap(tick => {
        const [x1, y1, x2, y2, x, y, anchor, look] = place(tick);
        const line = document.createElementNS(NAMESPACE, "line");
        Object.entries({x1, y1, x2, y2, class: look})
          .forEach(([name, value]) => line.setAttribute(name, value));
        const text = document.createElementNS(NAMESPACE, "text");
        Object.entries({x, y, "text-anchor": anchor})
          .forEach(([name, value]) => text.setAttribute(name, value));
        text.textContent = tickText(tick);
        return [line, text];
      }));
    }

    drawEvents() {
      for (const mark of this.svg.querySelectorAll(".event")) {
        const at = Number(mark.dataset.at);
        const x = this.across(at);
        const isIn = at >= this.shown[0] && at <= this.shown[1];
        mark.setAttribute("visibility", isIn ? "visible" : "hidden");
        if (mark.tagName === "line") {
          mark.setAttribute("x1", x);
          mark.setAttribute("x2", x);
        } else {
          const place = Math.max(x - 4, this.left + 10);
          mark.setAttribute("x", place);
          mark.setAttribute("transform", `rotate(-90 ${place} ${mark.getAttribute("y")})`);
        }
      }
    }

    // Shows the values at a place, without announcing each of them to screen readers.
    describe(x) {
      const parts = this.data.map(series => {
        let nearest = -1;
        series.x.forEach((each, i) => {
          if (series.y[i] !== null &&
              (nearest < 0 || Math.abs(each - x) < Math.abs(series.x[nearest] - x))) nearest = i;
        });
        return nearest < 0 ? "" : `step ${series.x[nearest]}: ${series.name} ${series.y[nearest]}`;
      });
      this.svg.querySelector("title")?.remove();
      const title = document.createElementNS(NAMESPACE, "title");
      title.textContent = parts.filter(Boolean).join("\n");
      this.svg.prepend(title);
    }
  }

  document.querySelectorAll("figure[data-zoom]").forEach(figure => new Zoom(figure));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("figure details").forEach(each => { each.open = true; });
  });
})();
