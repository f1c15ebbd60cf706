package template

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxRange is the longest range that Jinja's sandbox allows.
const maxRange = 100_000

// globalByName returns a function that every template can call, or nil.
func globalByName(name string) *function {
	switch name {
	case "range":
		return &function{name, callRange}
	case "dict":
		return &function{name, func(r *render, a args) (value, error) {
			d := newDict()
			return d, r.updateDict(d, a)
		}}
	case "namespace":
		return &function{name, func(r *render, a args) (value, error) {
			d := newDict()
			return &namespace{d}, r.updateDict(d, a)
		}}
	case "raise_exception":
		return &function{name, func(r *render, a args) (value, error) {
			p := a.bind(1, "message")
			if p.err != nil {
				return nil, p.err
			}
			msg, err := r.str(p.vals[0])
			if err != nil {
				return nil, err
			}
			return nil, &RaiseError{msg}
		}}
	case "strftime_now":
		return &function{name, func(r *render, a args) (value, error) {
			p := a.bind(1, "format")
			layout := p.text(0, "")
			if p.err != nil {
				return nil, p.err
			}
			if err := r.grow(64 * len(layout)); err != nil {
				return nil, err
			}
			return strftime(r.now, layout)
		}}
	}
	return nil
}

func callRange(r *render, a args) (value, error) {
	if len(a.kw) > 0 || len(a.pos) == 0 || len(a.pos) > 3 {
		return nil, errors.New("expected one to three integers")
	}
	bounds := [3]int64{0, 0, 1} // start, stop, step
	for i, v := range a.pos {
		n, ok := integer(v)
		if !ok {
			return nil, fmt.Errorf("expected integers, got %s", typeName(v))
		}
		if len(a.pos) == 1 {
			i = 1
		}
		bounds[i] = n
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return nil, errors.New("the step is zero")
	}
	var items []value
	for n := start; (step > 0 && n < stop) || (step < 0 && n > stop); {
		if len(items) == maxRange {
			return nil, fmt.Errorf("%w: a range of more than %d integers", ErrLimit, maxRange)
		}
		items = append(items, n)
		next, err := addInt(n, step)
		if err != nil {
			break // past any stop
		}
		n = next.(int64)
	}
	return &list{items}, r.grow(96 * len(items))
}

// strftime writes t in the C locale as the format's codes say; a "-" after "%"
// leaves out padding.
func strftime(t time.Time, format string) (string, error) {
	layouts := map[byte]string{
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006",
		'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04",
		'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06",
		'X': "15:04:05", 'y': "06", 'Y': "2006", 'f': "000000", 'z': "-0700", 'Z': "MST",
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		trim := i < len(format) && format[i] == '-'
		if trim {
			i++
		}
		if i == len(format) {
			return "", errors.New(`the format ends with "%"`)
		}
		code := format[i]
		var s string
		switch code {
		case '%':
			s = "%"
		case 'n':
			s = "\n"
		case 't':
			s = "\t"
		case 'j':
			s = fmt.Sprintf("%03d", t.YearDay())
		case 'u':
			s = fmt.Sprint((int(t.Weekday())+6)%7 + 1)
		case 'w':
			s = fmt.Sprint(int(t.Weekday()))
		case 'U':
			s = fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7)
		case 'W':
			s = fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
		case 'V':
			_, week := t.ISOWeek()
			s = fmt.Sprintf("%02d", week)
		case 'G':
			year, _ := t.ISOWeek()
			s = fmt.Sprint(year)
		case 'C':
			s = fmt.Sprintf("%02d", t.Year()/100)
		case 's':
			s = fmt.Sprint(t.Unix())
		case 'k':
			s = fmt.Sprintf("%2d", t.Hour())
		case 'l':
			s = fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
		case 'f':
			s = fmt.Sprintf("%06d", t.Nanosecond()/1000)
		default:
			layout, ok := layouts[code]
			if !ok {
				return "", fmt.Errorf("%%%c is no code of strftime", code)
			}
			s = t.Format(layout)
		}
		if trim && len(s) > 1 {
			s = strings.TrimLeft(s[:len(s)-1], "0 ") + s[len(s)-1:]
		}
		b.WriteString(s)
	}
	return b.String(), nil
}
