"""Text that came from somebody else, made fit to be shown."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""The text with every character that is no plain print written as an escape; line ends stay.

    Names from wheels, patches and indexes reach the terminal in reports. Control sequences there could rewrite the very
    verdict, and direction marks make one name look like another.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        character
        if character == "\n" or character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
