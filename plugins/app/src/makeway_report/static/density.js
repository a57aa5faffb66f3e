// Many pieces at once: the exact mean colour of each pixel.
//
// Each colour has a plane of cells (rows of nodes, pixels of time). A piece covers a rectangle of them, of which only
// the corners are written; two sums, along time and over the rows, then give how much of each cell is covered. The
// cost of a piece does not depend on its size. A row is two cells longer than the picture is wide, so that what ends
// at the right edge does not run into the next row.

class Density {
  constructor(colours) {
    this.colours = colours;
    this.planes = [];
  }

  /** Start anew; planes are kept from frame to frame. */
  clear(rows, width) {
    this.rows = rows;
    this.width = width;
    this.stride = width + 2;
    const cells = (rows + 1) * this.stride;
    for (let at = 0; at < this.colours.length; at++) {
      if (this.planes[at] && this.planes[at].length === cells) this.planes[at].fill(0);
      else this.planes[at] = new Float32Array(cells);
    }
  }

  /** Cover cells between two instants, in pixels, over rows `first` up to `last`, with a colour and a weight. */
  add(left, right, first, last, colour, weight) {
    if (left < 0) left = 0;
    if (right > this.width) right = this.width;
    if (right <= left) return;
    const cells = this.planes[colour];
    const a = left | 0;
    const b = right | 0;
    const inA = (left - a) * weight;
    const inB = (right - b) * weight;
    let at = first * this.stride;
    cells[at + a] += weight - inA;
    cells[at + a + 1] += inA;
    cells[at + b] -= weight - inB;
    cells[at + b + 1] -= inB;
    at = last * this.stride;
    cells[at + a] -= weight - inA;
    cells[at + a + 1] -= inA;
    cells[at + b] += weight - inB;
    cells[at + b + 1] += inB;
  }

  /** The picture, a pixel per cell; `fade` from 0 to 1 lets all step back. */
  image(fade) {
    const { rows, width, stride, planes } = this;
    const image = new ImageData(width, Math.max(rows, 1));
    const data = image.data;
    const sums = planes.map(() => new Float32Array(width));
    const mixed = new Float32Array(4 * width);
    for (let row = 0; row < rows; row++) {
      mixed.fill(0);
      for (let each = 0; each < planes.length; each++) {
        const [red, green, blue] = this.colours[each];
        const cells = planes[each];
        const above = sums[each];
        let sum = 0;
        for (let x = 0, at = row * stride, to = 0; x < width; x++, at++, to += 4) {
          sum += cells[at];
          const cover = (above[x] += sum);
          if (cover < 0.002) continue;
          mixed[to] += cover * red;
          mixed[to + 1] += cover * green;
          mixed[to + 2] += cover * blue;
          mixed[to + 3] += cover;
        }
      }
      for (let x = 0, from = 0, to = row * width * 4; x < width; x++, from += 4, to += 4) {
        const whole = mixed[from + 3];
        if (whole === 0) continue;
        const scale = 255 / whole;
        data[to] = mixed[from] * scale;
        data[to + 1] = mixed[from + 1] * scale;
        data[to + 2] = mixed[from + 2] * scale;
        data[to + 3] = 255 * fade * (whole < 1 ? whole : 1);
      }
    }
    return image;
  }
}
