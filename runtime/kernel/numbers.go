package kernel

import (
	"strconv"
	"strings"
)

// Distances returns a kernel's text with each value's number replaced by how far it lies below the last one defined before.
// Texts are stored so: code that is alike but for its numbers becomes the same, and compresses to less than half.
func Distances(text string) string { return renumber(text, false) }

// numbers undoes [Distances].
func numbers(text string) string { return renumber(text, true) }

// renumber replaces each number n after a % by last − n, where last is the number of the value that was defined last: one
// with a colon behind it.
func renumber(text string, back bool) string {
	var out strings.Builder
	last := 0
	for {
		before, after, found := strings.Cut(text, "%")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		end := 0
		for end < len(after) && (after[end] == '-' || '0' <= after[end] && after[end] <= '9') {
			end++
		}
		n, _ := strconv.Atoi(after[:end])
		out.WriteString("%" + strconv.Itoa(last-n))
		if back {
			n = last - n
		}
		text = after[end:]
		if strings.HasPrefix(text, ":") {
			last = n
		}
	}
}
