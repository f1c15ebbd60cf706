package sim

// The functions here make an instruction of the meaning of one lane. The commonest are written out.

func word1(f func(a uint32) uint32) func(*frame) error {
	return func(fr *frame) error {
		d, a := fr.w[0], fr.w[1]
		for l := range d {
			d[l] = f(a[l])
		}
		return nil
	}
}

func word2(f func(a, b uint32) uint32) func(*frame) error {
	return func(fr *frame) error {
		d, a, b := fr.w[0], fr.w[1], fr.w[2]
		for l := range d {
			d[l] = f(a[l], b[l])
		}
		return nil
	}
}

func word3(f func(a, b, c uint32) uint32) func(*frame) error {
	return func(fr *frame) error {
		d, a, b, c := fr.w[0], fr.w[1], fr.w[2], fr.w[3]
		for l := range d {
			d[l] = f(a[l], b[l], c[l])
		}
		return nil
	}
}

func word4(f func(a, b, c, e uint32) uint32) func(*frame) error {
	return func(fr *frame) error {
		d, a, b, c, e := fr.w[0], fr.w[1], fr.w[2], fr.w[3], fr.w[4]
		for l := range d {
			d[l] = f(a[l], b[l], c[l], e[l])
		}
		return nil
	}
}

func long1(f func(a uint64) uint64) func(*frame) error {
	return func(fr *frame) error {
		d, a := fr.x[0], fr.x[1]
		for l := range d {
			d[l] = f(a[l])
		}
		return nil
	}
}

func long2(f func(a, b uint64) uint64) func(*frame) error {
	return func(fr *frame) error {
		d, a, b := fr.x[0], fr.x[1], fr.x[2]
		for l := range d {
			d[l] = f(a[l], b[l])
		}
		return nil
	}
}

func long3(f func(a, b, c uint64) uint64) func(*frame) error {
	return func(fr *frame) error {
		d, a, b, c := fr.x[0], fr.x[1], fr.x[2], fr.x[3]
		for l := range d {
			d[l] = f(a[l], b[l], c[l])
		}
		return nil
	}
}

func longShift(f func(a uint64, b uint32) uint64) func(*frame) error {
	return func(fr *frame) error {
		d, a, b := fr.x[0], fr.x[1], fr.w[2]
		for l := range d {
			d[l] = f(a[l], b[l])
		}
		return nil
	}
}

func wide(f func(a, b uint32) uint64) func(*frame) error {
	return func(fr *frame) error {
		d, a, b := fr.x[0], fr.w[1], fr.w[2]
		for l := range d {
			d[l] = f(a[l], b[l])
		}
		return nil
	}
}

func wideAdd(f func(a, b uint32) uint64) func(*frame) error {
	return func(fr *frame) error {
		d, a, b, c := fr.x[0], fr.w[1], fr.w[2], fr.x[3]
		for l := range d {
			d[l] = f(a[l], b[l]) + c[l]
		}
		return nil
	}
}

func flag2(f func(a, b uint32) uint32) func(*frame) error {
	return func(fr *frame) error {
		fr.p[0] = f(fr.p[1], fr.p[2])
		return nil
	}
}

func addWords(f *frame) error {
	d, a, b := f.w[0], f.w[1], f.w[2]
	for l := range d {
		d[l] = a[l] + b[l]
	}
	return nil
}

func andWords(f *frame) error {
	d, a, b := f.w[0], f.w[1], f.w[2]
	for l := range d {
		d[l] = a[l] & b[l]
	}
	return nil
}

func moveWords(f *frame) error {
	*f.w[0] = *f.w[1]
	return nil
}

func moveLongs(f *frame) error {
	*f.x[0] = *f.x[1]
	return nil
}

func moveFlags(f *frame) error {
	f.p[0] = f.p[1]
	return nil
}

// packHalves and the like move between a register and its halves, the low one first.
func packHalves(f *frame) error {
	d, lo, hi := f.w[0], f.w[1], f.w[2]
	for l := range d {
		d[l] = lo[l] | hi[l]<<16
	}
	return nil
}

func unpackHalves(f *frame) error {
	lo, hi, a := f.w[0], f.w[1], f.w[2]
	for l := range a {
		lo[l], hi[l] = a[l]&0xFFFF, a[l]>>16
	}
	return nil
}

func packWords(f *frame) error {
	d, lo, hi := f.x[0], f.w[1], f.w[2]
	for l := range d {
		d[l] = uint64(lo[l]) | uint64(hi[l])<<32
	}
	return nil
}

func unpackWords(f *frame) error {
	lo, hi, a := f.w[0], f.w[1], f.x[2]
	for l := range a {
		lo[l], hi[l] = uint32(a[l]), uint32(a[l]>>32)
	}
	return nil
}

// convertInteger converts from one integer type to another, between registers of types d and a.
func convertInteger(to, from, d, a typ) func(*frame) error {
	value := func(v uint64) uint64 { return to.narrow(from.narrow(v)) }
	switch {
	case d.class() == longs && a.class() == longs:
		return long1(value)
	case d.class() == longs:
		return func(f *frame) error {
			d, a := f.x[0], f.w[1]
			for l := range d {
				d[l] = value(uint64(a[l]))
			}
			return nil
		}
	case a.class() == longs:
		return func(f *frame) error {
			to, from := f.w[0], f.x[1]
			for l := range to {
				to[l] = cut(d, value(from[l]))
			}
			return nil
		}
	}
	return word1(func(v uint32) uint32 { return cut(d, value(uint64(v))) })
}

// cut returns what a register of type t of class words keeps of a value.
func cut(t typ, v uint64) uint32 {
	if t.bytes() == 2 {
		return uint32(uint16(v))
	}
	return uint32(v)
}
