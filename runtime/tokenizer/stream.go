package tokenizer

import "unicode/utf8"

// Stream decodes the tokens of a generation one at a time. Its texts are valid UTF-8: a character that several tokens
// spell is held back until it is complete, and each invalid byte becomes U+FFFD. It continues a text, so unlike
// [Tokenizer.Decode] it keeps a first space.
type Stream struct {
	t    *Tokenizer
	tail []byte // beginning of a character
}

// NewStream returns a Stream without text.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t} }

// Add returns the text that id completes.
func (s *Stream) Add(id int32) string {
	s.tail = s.t.appendPiece(s.tail, id)
	var text []byte
	for utf8.FullRune(s.tail) {
		r, n := utf8.DecodeRune(s.tail)
		text = utf8.AppendRune(text, r)
		s.tail = s.tail[n:]
	}
	return string(text)
}

// Flush returns what is left at the end of a generation: U+FFFD for an incomplete character.
func (s *Stream) Flush() string {
	if len(s.tail) == 0 {
		return ""
	}
	s.tail = nil
	return string(utf8.RuneError)
}
