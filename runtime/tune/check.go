package tune

import (
	"fmt"
	"slices"

	"github.com/swizzle-rt/swizzle/runtime/dispatch"
)

// check is a small problem with the answer of the portable kernels.
type check struct {
	product   *product
	attention *attention
	initial   byte       // what outputs hold before
	want      [][][]byte // outputs, for a product without and with add
}

// The sizes of checks. Rows of weights are no multiple of a tile's, so that the masks of the last tile are used.
const (
	checkRows = 64
	checkN    = 40
	checkK    = 256 // where no problem says
	checkLast = 300 // position, in the second segment
)

// checkBits compares a candidate with the portable kernels on a problem of few weights, but of the same k. A product is run
// with and without adding to its output.
func (t *tuner) checkBits(q task, c candidate) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("failed: %v", p)
		}
	}()
	m := q.M
	if q.group > 0 || m > exactRows {
		m = min(m, checkRows)
	}
	k, err := t.checkOf(q, m)
	if err != nil {
		return err
	}
	if k.attention != nil {
		j, err := k.attention.job(c.runs[0].Kernel)
		if err != nil {
			return err
		}
		return k.compare(j, t.dev, 0, m)
	}
	runs := c.rows.Cut(m, nil)
	if q.M > m {
		if m, runs = c.checkRuns(); m == 0 {
			return fmt.Errorf("failed: no number of rows up to %d uses all its tiles", checkRows)
		}
	}
	for i, add := range []bool{false, true} {
		j, err := k.product.job(runs, add)
		if err != nil {
			return err
		}
		if err := k.compare(j, t.dev, i, m); err != nil {
			return err
		}
	}
	return nil
}

// checkRuns returns the most rows up to checkRows that the candidate's kernels cut whole, every one of them, and the runs.
func (c candidate) checkRuns() (int, []dispatch.Run) {
	for m := checkRows; m > 0; m-- {
		runs := c.rows.Cut(m, nil)
		n := 0
		for _, r := range runs {
			n += r.Rows
		}
		if n == m && len(runs) == len(c.rows) {
			return m, runs
		}
	}
	return 0, nil
}

// compare runs the job and compares the first m rows of its outputs, or all of attention's.
func (k *check) compare(j *job, d *dispatch.Device, i, m int) error {
	j.wipe(k.initial)
	j.run(d)
	var got, want [][]byte
	for n, b := range j.out {
		size := len(b)
		if k.product != nil {
			size = 4 * m * checkN
		}
		got, want = append(got, b[:size]), append(want, k.want[i][n][:size])
	}
	if s := differs(got, want); s != "" {
		return fmt.Errorf("%w: %s", errBits, s)
	}
	return nil
}

// checkOf returns the check of a problem. Products of one op and k share theirs, since rows don't depend on each other.
func (t *tuner) checkOf(q task, m int) (*check, error) {
	key := Problem{Op: q.Op, N: q.N, K: q.K, M: m}
	if q.group == 0 {
		key.N, key.M = 0, 0
	}
	if k := t.checks[key]; k != nil {
		return k, nil
	}
	rows, err := t.portable.Rows(q.Op, RowParam(q.Op))
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(k dispatch.RowKernel) bool { return k.Rows > 4 }) // the plainest
	k := &check{initial: 0x3F}                                                            // a float of 0.747
	run := func(j *job, err error) error {
		if err != nil {
			return err
		}
		j.wipe(k.initial)
		j.run(t.dev)
		k.want = append(k.want, j.snapshot())
		return nil
	}
	if q.group > 0 {
		tile := rows.Tile(m)
		if k.attention, err = newAttention(&t.checkMem, tile, q.N, q.K, m, q.group, checkLast, nil); err == nil {
			err = run(k.attention.job(tile))
		}
	} else {
		runs := rows.Cut(checkRows, nil)
		if k.product, err = newProduct(&t.checkMem, t.dev, runs[0].Kernel, checkN, q.K, checkRows, nil, false); err == nil {
			err = run(k.product.job(runs, false))
		}
		if err == nil {
			err = run(k.product.job(runs, true))
		}
	}
	if err != nil {
		return nil, err
	}
	t.checks[key] = k
	return k, nil
}
