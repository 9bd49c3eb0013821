"""A terminal of a fixed size: runs a program in it, follows what the program draws, and writes a screen as HTML.

It knows what the live view uses: cursor movement, erasing, colours and attributes. Anything else is skipped.
"""

import fcntl
import html
import os
import pty
import re
import select
import struct
import termios
import unicodedata

# Palette of the picture: the sixteen colours of a terminal on a dark background.
PALETTE = ("#2b2f36", "#f07178", "#8bd49c", "#e6c07b", "#7aa2f7", "#c792ea", "#5ccfe6", "#c8ccd4",
           "#6b7280", "#ff8b92", "#a5e8b4", "#ffd58a", "#9bbcff", "#dbb0ff", "#8ae6f5", "#ffffff")
# The width of a character of this font, such that a cell has a whole number of pixels in a picture at scale 2: without seams.
COLUMN_PX = 9.5
FOREGROUND, BACKGROUND = "#d7dae0", "#16181d"
PLAIN = (None, None, frozenset())
ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
BARS = "▁▂▃▄▅▆▇█"
SEQUENCE = re.compile(rb"\x1b\[([?>=<]?)([0-9;:]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78M]")


class Screen:
    """Cells of a terminal, and where its cursor is."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.row = self.column = 0
        self.style = PLAIN
        self.cells = [[(" ", PLAIN)] * columns for _ in range(rows)]
        self.rest = b""

    def feed(self, data):
        """Takes the next bytes of the program; an unfinished sequence waits for the bytes after it."""
        data = self.rest + data
        at = 0
        while at < len(data):
            if data[at] == 0x1B:
                match = SEQUENCE.match(data, at)
                if match is None:
                    if len(data) - at < 64:
                        break
                    at += 1
                    continue
                if match.group(3):
                    self.control(match.group(1), match.group(2).decode(), match.group(3).decode())
                at = match.end()
            elif data[at] < 0x20 or data[at] == 0x7F:
                self.move(data[at])
                at += 1
            else:
                length = 1 if data[at] < 0x80 else 2 if data[at] < 0xE0 else 3 if data[at] < 0xF0 else 4
                if at + length > len(data):
                    break
                self.put(data[at:at + length].decode(errors="replace"))
                at += length
        self.rest = data[at:]

    def put(self, character):
        if unicodedata.combining(character):
            return
        if self.column >= self.columns:
            self.column, self.row = 0, min(self.row + 1, self.rows - 1)
        self.cells[self.row][self.column] = (character, self.style)
        self.column += 1

    def move(self, control):
        if control == 0x0D:
            self.column = 0
        elif control == 0x0A and self.row + 1 < self.rows:
            self.row += 1
        elif control == 0x0A:
            self.cells = self.cells[1:] + [[(" ", PLAIN)] * self.columns]
        elif control == 0x08:
            self.column = max(0, self.column - 1)

    def control(self, private, text, final):
        numbers = [int(number) if number else 0 for number in re.split("[;:]", text)]
        first = max(1, numbers[0])
        if private:
            # The alternate screen begins empty.
            if final == "h" and numbers[0] == 1049:
                self.erase(0, self.rows * self.columns)
        elif final in "Hf":
            self.row = min(first, self.rows) - 1
            self.column = min(max(1, numbers[1] if len(numbers) > 1 else 1), self.columns) - 1
        elif final == "A":
            self.row = max(0, self.row - first)
        elif final == "B":
            self.row = min(self.rows - 1, self.row + first)
        elif final == "C":
            self.column = min(self.columns - 1, self.column + first)
        elif final == "D":
            self.column = max(0, self.column - first)
        elif final == "G":
            self.column = min(first, self.columns) - 1
        elif final == "d":
            self.row = min(first, self.rows) - 1
        elif final in "JK":
            self.erase(*self.extent(final, numbers[0]))
        elif final == "m":
            self.colour(numbers)

    def extent(self, final, which):
        here = self.row * self.columns + self.column
        begin, end = (0, self.rows * self.columns) if final == "J" else (
            self.row * self.columns, (self.row + 1) * self.columns)
        return (here, end) if which == 0 else (begin, here + 1) if which == 1 else (begin, end)

    def erase(self, begin, end):
        for at in range(begin, min(end, self.rows * self.columns)):
            self.cells[at // self.columns][at % self.columns] = (" ", PLAIN)

    def colour(self, numbers):
        foreground, background, attributes = self.style
        numbers = list(numbers)
        while numbers:
            number = numbers.pop(0)
            if number == 0:
                foreground, background, attributes = PLAIN
            elif number in ATTRIBUTES:
                attributes |= {ATTRIBUTES[number]}
            elif number == 22:
                attributes -= {"bold", "dim"}
            elif number in (23, 24, 27):
                attributes -= {ATTRIBUTES[number - 20]}
            elif number in (38, 48) and numbers:
                value = extended(numbers)
                foreground, background = (value, background) if number == 38 else (foreground, value)
            elif 30 <= number <= 37 or 90 <= number <= 97:
                foreground = PALETTE[number - 30 if number < 40 else number - 82]
            elif 40 <= number <= 47 or 100 <= number <= 107:
                background = PALETTE[number - 40 if number < 50 else number - 92]
            elif number == 39:
                foreground = None
            elif number == 49:
                background = None
        self.style = (foreground, background, frozenset(attributes))

    def text(self):
        """The screen as lines of text."""
        return "\n".join("".join(character for character, _ in row).rstrip() for row in self.cells)

    def html(self, title):
        """The screen as a page whose body is a window of a terminal."""
        lines = "".join(f'<div class="row">{"".join(map(cell, row))}</div>' for row in self.cells)
        return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>
body {{ margin: 0; background: {BACKGROUND}; width: fit-content; }}
.bar {{ color: #9aa0ab; background: #20232a; font: 13px/20px system-ui, sans-serif; padding: 8px 14px; text-align: center; }}
.screen {{ padding: 12px 14px; font: 15.46px/18px "DejaVu Sans Mono", "Noto Sans Mono", monospace; color: {FOREGROUND}; }}
.row {{ display: grid; grid-template-columns: repeat({self.columns}, {COLUMN_PX}px); height: 18px; white-space: pre; }}
.row > * {{ font-weight: 400; font-style: normal; overflow: visible; height: 18px; line-height: 18px; }}
.row b {{ font-weight: 700; }}
</style><div class="bar">{html.escape(title)}</div><div class="screen">{lines}</div></html>"""


def extended(numbers):
    """A colour after 38 or 48: of the palette of 256, or red, green and blue."""
    kind = numbers.pop(0)
    if kind == 2 and len(numbers) >= 3:
        return "#" + "".join(f"{numbers.pop(0):02x}" for _ in range(3))
    if kind != 5 or not numbers:
        return None
    index = numbers.pop(0)
    if index < 16:
        return PALETTE[index]
    if index >= 232:
        return "#" + f"{8 + 10 * (index - 232):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    index -= 16
    return "#" + "".join(f"{levels[part]:02x}" for part in (index // 36, index // 6 % 6, index % 6))


def cell(pair):
    """A cell of the grid."""
    character, (foreground, background, attributes) = pair
    if "reverse" in attributes:
        foreground, background = background or BACKGROUND, foreground or FOREGROUND
    style = (f"color:{foreground};" if foreground else "") + (f"background:{background};" if background else "")
    style += "opacity:.6;" if "dim" in attributes else ""
    if character in BARS:
        # Drawn, not set: glyphs leave gaps between lines.
        height = (BARS.index(character) + 1) * 100 / len(BARS)
        style += f"background:linear-gradient(to top,{foreground or FOREGROUND} {height}%,{background or 'transparent'} {height}%);"
        character = " "
    tag = "b" if "bold" in attributes else "i"
    style = f' style="{style}"' if style else ""
    return f"<{tag}{style}>{html.escape(character)}</{tag}>"


def run(command, columns, rows, directory, seen):
    """Runs a command to its end on a terminal; `seen(screen)` is called after whatever it drew. Gives its exit code."""
    child, master = pty.fork()
    if child == 0:
        os.chdir(directory)
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)}
        os.environ.pop("NO_COLOR", None)
        # The size is set before the program looks.
        os.read(0, 1)
        os.execvp(command[0], command)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.write(master, b"\n")
    screen = Screen(columns, rows)
    while True:
        select.select([master], [], [])
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        # Where the program wants to know the cursor, it is told.
        if b"\x1b[6n" in data:
            os.write(master, f"\x1b[{screen.row + 1};{screen.column + 1}R".encode())
        screen.feed(data)
        seen(screen)
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
