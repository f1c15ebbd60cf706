package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// byteRunes is the alphabet of byte-level BPE: byte b is written as byteRunes[b]. Printable bytes of Latin-1 stand for
// themselves, the others are numbered from U+0100, so that a vocabulary is readable text without white space.
var byteRunes = func() (runes [256]rune) {
	next := rune(0x100)
	for b := range runes {
		switch {
		case '!' <= b && b <= '~', 0xA1 <= b && b <= 0xAC, 0xAE <= b:
			runes[b] = rune(b)
		default:
			runes[b] = next
			next++
		}
	}
	return runes
}()

// runeBytes is the inverse of byteRunes, -1 for runes outside the alphabet.
var runeBytes = func() (bytes [0x100 + 68]int16) {
	for i := range bytes {
		bytes[i] = -1
	}
	for b, r := range byteRunes {
		bytes[r] = int16(b)
	}
	return bytes
}()

// appendEncoded appends s in the alphabet of byte-level BPE.
func appendEncoded(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = utf8.AppendRune(dst, byteRunes[s[i]])
	}
	return dst
}

// appendDecoded appends the bytes that text spells in the alphabet of byte-level BPE. A text with a rune outside the
// alphabet, such as the name of an added token, is taken as it is.
func appendDecoded(dst []byte, text string) []byte {
	start := len(dst)
	for _, r := range text {
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			return append(dst[:start], text...)
		}
		dst = append(dst, byte(runeBytes[r]))
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

// parseByte returns the byte of a token named like <0x0A>.
func parseByte(name string) (b byte, ok bool) {
	if len(name) != len("<0x0A>") || name[:3] != "<0x" || name[5] != '>' {
		return 0, false
	}
	digits := strings.ToUpper(name[3:5])
	high, low := strings.IndexByte(hexDigits, digits[0]), strings.IndexByte(hexDigits, digits[1])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

// byteName is the inverse of parseByte.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }
