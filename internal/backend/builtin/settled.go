package builtin

import "github.com/sluice-ml/sluice/internal/engine"

// Settled says that an attempt's end is in the journal, or wanted no more: its result need not be kept. Without it a
// program that runs for months would keep all of them.
func (b *Backend) Settled(run engine.Run, path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := key{run.UID, path}
	if t := b.tasks[id]; t != nil {
		t.cancel(errStopped) // nobody waits for it
		delete(b.tasks, id)
	}
	_ = b.forgetRecord(id) // what is left is small, and goes with the run's folder
}
