// The screen of a terminal: what a program writes (UTF-8 with VT100/xterm sequences) becomes rows of characters with attributes.
// No DOM here; shell.js draws it.

const BLANK = { c: " ", s: "" };

export class Screen {
  constructor(columns, rows) {
    this.columns = columns; this.rows = rows;
    this.state = "text"; this.parameters = "";
    this.reply = () => {};
    this.reset();
  }

  reset() {
    this.lines = Array.from({ length: this.rows }, () => this.blankLine());
    this.history = []; this.other = null;
    this.x = this.y = 0; this.style = {}; this.saved = null;
    this.top = 0; this.bottom = this.rows - 1;
    this.wrapNext = false; this.cursorShown = true; this.applicationKeys = false; this.bracketedPaste = false; this.autoWrap = true;
  }

  blankLine() { return Array.from({ length: this.columns }, () => BLANK); }

  resize(columns, rows) {
    const fit = (lines) => {
      for (const line of lines) { while (line.length < columns) line.push(BLANK); line.length = columns; }
      while (lines.length > rows) { const gone = lines.shift(); if (lines === this.lines && !this.other) this.history.push(gone); this.y = Math.max(0, this.y - 1); }
      while (lines.length < rows) lines.push(Array.from({ length: columns }, () => BLANK));
    };
    this.columns = columns; this.rows = rows;
    fit(this.lines);
    if (this.other) fit(this.other.lines);
    this.top = 0; this.bottom = rows - 1;
    this.x = Math.min(this.x, columns - 1); this.y = Math.min(this.y, rows - 1);
  }

  write(text) { for (const char of text) this[this.state](char); }

  text(char) {
    const code = char.codePointAt(0);
    if (code === 27) this.state = "escape";
    else if (code < 32 || code === 127) this.control(code);
    else {
      if (this.wrapNext && this.autoWrap) { this.x = 0; this.lineFeed(); }
      this.lines[this.y][this.x] = { c: char, s: this.styleText() };
      this.wrapNext = this.x === this.columns - 1;
      if (!this.wrapNext) this.x++;
    }
  }

  control(code) {
    if (code === 8) { this.x = Math.max(0, this.x - 1); this.wrapNext = false; }
    else if (code === 9) this.x = Math.min(this.columns - 1, (this.x | 7) + 1);
    else if (code >= 10 && code <= 12) this.lineFeed();
    else if (code === 13) { this.x = 0; this.wrapNext = false; }
  }

  lineFeed() {
    this.wrapNext = false;
    if (this.y === this.bottom) this.scroll(1);
    else if (this.y < this.rows - 1) this.y++;
  }

  scroll(count, top = this.top) {
    for (let i = 0; i < Math.min(Math.abs(count), this.rows); i++) {
      if (count > 0) {
        const [gone] = this.lines.splice(top, 1);
        if (top === 0 && !this.other) { this.history.push(gone); if (this.history.length > 2000) this.history.shift(); }
        this.lines.splice(this.bottom, 0, this.blankLine());
      } else {
        this.lines.splice(this.bottom, 1);
        this.lines.splice(top, 0, this.blankLine());
      }
    }
  }

  escape(char) {
    this.state = "text";
    if (char === "[") { this.state = "sequence"; this.parameters = ""; }
    else if (char === "]" || char === "P" || char === "_" || char === "^") this.state = "string";
    else if (char === "(" || char === ")" || char === "#") this.state = "skip";
    else if (char === "7") this.save();
    else if (char === "8") this.restore();
    else if (char === "D") this.lineFeed();
    else if (char === "E") { this.x = 0; this.lineFeed(); }
    else if (char === "M") { if (this.y === this.top) this.scroll(-1); else this.y = Math.max(0, this.y - 1); }
    else if (char === "c") this.reset();
  }

  skip() { this.state = "text"; }
  string(char) { if (char === "\x07") this.state = "text"; else if (char === "\x1b") this.state = "stringEnd"; }
  stringEnd(char) { this.state = char === "\\" ? "text" : "string"; }

  sequence(char) {
    if (char >= "@" && char <= "~") { this.state = "text"; this.run(char); }
    else if (this.parameters.length < 64) this.parameters += char;
  }

  save() { this.saved = { x: this.x, y: this.y, style: { ...this.style } }; }
  restore() { if (this.saved) { this.x = Math.min(this.saved.x, this.columns - 1); this.y = Math.min(this.saved.y, this.rows - 1); this.style = { ...this.saved.style }; } this.wrapNext = false; }

  run(char) {
    const mark = /^[?>=!]/.test(this.parameters) ? this.parameters[0] : "";
    const numbers = this.parameters.slice(mark.length).split(/[;:]/).map((each) => parseInt(each, 10));
    const n = (index, usual = 1) => Number.isFinite(numbers[index]) && (numbers[index] > 0 || usual === 0) ? numbers[index] : usual;
    const line = this.lines[this.y];
    const moves = { A: [0, -n(0)], B: [0, n(0)], C: [n(0), 0], D: [-n(0), 0] }[char];
    if (char === "m" && !mark) { this.attributes(numbers); return; }
    if (char === "h" || char === "l") { if (mark === "?") for (const each of numbers) this.mode(each, char === "h"); return; }
    if (mark) return;
    this.wrapNext = false;
    if (moves) this.place(this.x + moves[0], this.y + moves[1]);
    else if (char === "E") this.place(0, this.y + n(0));
    else if (char === "F") this.place(0, this.y - n(0));
    else if (char === "G" || char === "`") this.place(n(0) - 1, this.y);
    else if (char === "d") this.place(this.x, n(0) - 1);
    else if (char === "H" || char === "f") this.place(n(1) - 1, n(0) - 1);
    else if (char === "J") {
      const what = n(0, 0);
      if (what === 0) { this.erase(line, this.x, this.columns); for (let y = this.y + 1; y < this.rows; y++) this.lines[y] = this.blankLine(); }
      else if (what === 1) { for (let y = 0; y < this.y; y++) this.lines[y] = this.blankLine(); this.erase(line, 0, this.x + 1); }
      else { for (let y = 0; y < this.rows; y++) this.lines[y] = this.blankLine(); if (what === 3) this.history = []; }
    }
    else if (char === "K") { const what = n(0, 0); this.erase(line, what === 0 ? this.x : 0, what === 1 ? this.x + 1 : this.columns); }
    else if (char === "X") this.erase(line, this.x, Math.min(this.columns, this.x + n(0)));
    else if (char === "P") { line.splice(this.x, Math.min(n(0), this.columns - this.x)); while (line.length < this.columns) line.push(BLANK); }
    else if (char === "@") { line.splice(this.x, 0, ...Array.from({ length: Math.min(n(0), this.columns - this.x) }, () => BLANK)); line.length = this.columns; }
    else if (char === "L") { if (this.y >= this.top && this.y <= this.bottom) this.scroll(-n(0), this.y); }
    else if (char === "M") { if (this.y >= this.top && this.y <= this.bottom) { for (let i = 0; i < Math.min(n(0), this.rows); i++) { this.lines.splice(this.y, 1); this.lines.splice(this.bottom, 0, this.blankLine()); } } }
    else if (char === "S") this.scroll(n(0));
    else if (char === "T") this.scroll(-n(0));
    else if (char === "r") { const top = n(0) - 1, bottom = Math.min(n(1, this.rows), this.rows) - 1; if (top < bottom) { this.top = top; this.bottom = bottom; this.place(0, 0); } }
    else if (char === "s") this.save();
    else if (char === "u") this.restore();
    else if (char === "n" && n(0, 0) === 6) this.reply(`\x1b[${this.y + 1};${this.x + 1}R`);
    else if (char === "c") this.reply("\x1b[?6c");
  }

  place(x, y) { this.x = Math.max(0, Math.min(this.columns - 1, x)); this.y = Math.max(0, Math.min(this.rows - 1, y)); this.wrapNext = false; }
  erase(line, from, to) { for (let x = from; x < to; x++) line[x] = BLANK; }

  mode(number, on) {
    if (number === 25) this.cursorShown = on;
    else if (number === 1) this.applicationKeys = on;
    else if (number === 7) this.autoWrap = on;
    else if (number === 2004) this.bracketedPaste = on;
    else if (number === 1049 || number === 47 || number === 1047) {
      if (on && !this.other) { this.save(); this.other = { lines: this.lines, saved: this.saved }; this.lines = Array.from({ length: this.rows }, () => this.blankLine()); this.place(0, 0); }
      else if (!on && this.other) { this.lines = this.other.lines; this.saved = this.other.saved; this.other = null; this.restore(); }
    }
  }

  attributes(numbers) {
    for (let i = 0; i < numbers.length; i++) {
      const n = numbers[i] || 0;
      if (n === 0) this.style = {};
      else if (n === 1) this.style.bold = true;
      else if (n === 3) this.style.italic = true;
      else if (n === 4) this.style.underline = true;
      else if (n === 7) this.style.inverse = true;
      else if (n === 22) this.style.bold = false;
      else if (n === 23) this.style.italic = false;
      else if (n === 24) this.style.underline = false;
      else if (n === 27) this.style.inverse = false;
      else if (n === 39) delete this.style.front;
      else if (n === 49) delete this.style.back;
      else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97)) this.style.front = colour(n < 90 ? n - 30 : n - 82);
      else if ((n >= 40 && n <= 47) || (n >= 100 && n <= 107)) this.style.back = colour(n < 100 ? n - 40 : n - 92);
      else if (n === 38 || n === 48) {
        const rgb = numbers[i + 1] === 2;
        this.style[n === 38 ? "front" : "back"] = rgb ? `rgb(${numbers.slice(i + 2, i + 5).map((each) => each & 255).join(",")})` : colour(numbers[i + 2] & 255);
        i += rgb ? 4 : 2;
      }
    }
  }

  // The attributes of a character as one string, so that equal neighbours are drawn together.
  styleText() {
    const { bold, italic, underline, inverse, front, back } = this.style;
    return bold || italic || underline || inverse || front || back ? [bold ? 1 : 0, italic ? 1 : 0, underline ? 1 : 0, inverse ? 1 : 0, front || "", back || ""].join("|") : "";
  }
}

const BASIC = ["#20242b", "#e5534b", "#57ab5a", "#c69026", "#539bf5", "#b083f0", "#39c5cf", "#c9d1d9", "#6e7681", "#ff938a", "#6bc46d", "#daaa3f", "#6cb6ff", "#dcbdfb", "#56d4dd", "#ffffff"];

export function colour(index) {
  if (index < 16) return BASIC[index];
  if (index >= 232) { const grey = 8 + (index - 232) * 10; return `rgb(${grey},${grey},${grey})`; }
  const steps = [0, 95, 135, 175, 215, 255], n = index - 16;
  return `rgb(${steps[Math.floor(n / 36)]},${steps[Math.floor(n / 6) % 6]},${steps[n % 6]})`;
}
