package transfer

import (
	"errors"
	"fmt"
	"io"
)

// Limits bound what an archive may unpack to, so that a small hostile file cannot fill the machine.
type Limits struct {
	// Bytes in all; 0 is 1 TiB.
	Bytes int64
	// Entries in all; 0 is 10 million.
	Entries int64
	// Ratio of unpacked to packed bytes, looked at once RatioFloor bytes were unpacked; 0 is 500.
	Ratio int64
	// RatioFloor in bytes; 0 is 1 GiB.
	RatioFloor int64
}

// ErrTooLarge says that an archive unpacks to more than the limits allow.
var ErrTooLarge = errors.New("archive exceeds the limits")

func (l Limits) withDefaults() Limits {
	set := func(v *int64, def int64) {
		if *v <= 0 {
			*v = def
		}
	}
	set(&l.Bytes, 1<<40)
	set(&l.Entries, 10_000_000)
	set(&l.Ratio, 500)
	set(&l.RatioFloor, 1<<30)
	return l
}

// meter counts what one archive unpacks to.
type meter struct {
	limits  Limits
	entries int64
	out     int64
	in      *counter // packed bytes read so far
}

func newMeter(limits Limits, in *counter) *meter {
	return &meter{limits: limits.withDefaults(), in: in}
}

func (m *meter) entry() error {
	m.entries++
	if m.entries > m.limits.Entries {
		return fmt.Errorf("%w: more than %d entries", ErrTooLarge, m.limits.Entries)
	}
	return nil
}

// copy copies an entry's bytes and stops at the limits.
func (m *meter) copy(w io.Writer, r io.Reader) error {
	const step = 1 << 20
	for {
		n, err := io.CopyN(w, r, step)
		m.out += n
		if m.out > m.limits.Bytes {
			return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, m.limits.Bytes)
		}
		if m.out > m.limits.RatioFloor && m.out/m.limits.Ratio > m.in.n {
			return fmt.Errorf("%w: %d bytes unpack to more than %d times as many", ErrTooLarge, m.in.n, m.limits.Ratio)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
