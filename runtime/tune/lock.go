package tune

import (
	"errors"
	"os"
	"time"
)

// lockWait is how long lock waits for another process, which holds it for milliseconds.
const lockWait = 10 * time.Second

var errLocked = errors.New("locked by another process")

// lock takes the lock of a file, which it creates. The system drops the lock when its process ends, however it ends, so
// none is ever left behind; the file stays.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		err = tryLock(f)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, errLocked) || time.Now().After(deadline) {
			return nil, errors.Join(err, f.Close())
		}
	}
}
