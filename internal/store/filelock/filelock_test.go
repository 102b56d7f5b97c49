package filelock_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/sluice-ml/sluice/internal/store/filelock"
)

func TestTryIsRefusedWhileHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, ok := filelock.Holder(path); ok {
		t.Fatal("a missing file counts as held")
	}
	l, err := filelock.Try(path, "first, process 1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = filelock.Try(path, "second")
	var held *filelock.HeldError
	if !errors.As(err, &held) || held.Holder != "first, process 1" {
		t.Fatalf("second Try: %v, want a HeldError by the first", err)
	}
	if who, ok := filelock.Holder(path); !ok || who != "first, process 1" {
		t.Fatalf("Holder = %q, %v", who, ok)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if who, ok := filelock.Holder(path); ok {
		t.Fatalf("after Release held by %q", who)
	}
	if l, err = filelock.Wait(path, "3"); err != nil {
		t.Fatal(err)
	}
	if who, _ := filelock.Holder(path); who != "3" {
		t.Fatalf("Holder = %q, want what the last holder wrote", who)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
