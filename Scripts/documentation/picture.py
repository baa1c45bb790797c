"""The form and the colors that the pictures of queues have in common. They follow the dark mode of the reader."""

import html

# Each state has a color for the light mode and one for the dark mode.
COLORS = {
    "waiting": ("#d9d9d9", "#484f58"),
    "held": ("#fdd49e", "#7d4e00"),
    "ready": ("#fff3a3", "#6b5b00"),
    "running": ("#9ecae1", "#1f5a8a"),
    "ending": ("#f4a6a6", "#8e3a3a"),
    "ended": ("#b7e1b0", "#2b6238"),
    "handler": ("#c7b9e2", "#5d4a86"),
    "outside": ("#ffffff", "#0d1117"),
}


def picture(width, height, title, parts, style=""):
    """Returns an SVG that a phone shows without scrolling if the width is at most 350."""
    light, dark = (
        "".join(f".{name}{{fill:{pair[mode]}}}" for name, pair in COLORS.items()) for mode in (0, 1))
    size = f'width="{width:g}" height="{height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" {size} role="img" '
        f'aria-label="{html.escape(title)}">\n<style>\n'
        "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\n"
        f".back{{fill:#fff;stroke:#d0d7de}}.line{{fill:none;stroke:#59636e}}.tip{{fill:#59636e}}.box{{stroke:#59636e}}{style}\n"
        f"{light}\n@media (prefers-color-scheme:dark){{text{{fill:#e6edf3}}\n"
        f".back{{fill:#0d1117;stroke:#3d444d}}.line,.box{{stroke:#9198a1}}.tip{{fill:#9198a1}}\n{dark}}}\n</style>\n"
        f'<rect class="back" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>\n'
        + "\n".join(parts) + "\n</svg>")
