package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// guard breaks the name of a control token that stands in a user's text. It is a noncharacter, which has no place in texts
// that are exchanged.
const guard = "\uFDD0"

// Protect marks the names of control tokens in a user's text, so that [Tokenizer.EncodeProtected] takes them as plain text.
// A template may render the result among names that do count. The mark itself, U+FDD0, is dropped from the text.
func (t *Tokenizer) Protect(text string) string {
	text = strings.ReplaceAll(text, guard, "")
	var out strings.Builder
	for text != "" {
		start, end, id := t.special.find(text)
		if id < 0 {
			break
		}
		if !t.isMarkup(id) {
			out.WriteString(text[:end])
			text = text[end:]
			continue
		}
		_, n := utf8.DecodeRuneInString(text[start:])
		out.WriteString(text[:start+n])
		out.WriteString(guard)
		text = text[start+n:]
	}
	out.WriteString(text)
	return out.String()
}

// EncodeProtected is [Tokenizer.Encode] with special, where names marked by [Tokenizer.Protect] are plain text.
func (t *Tokenizer) EncodeProtected(text string) []int32 { return t.encode(text, &t.special, true) }
