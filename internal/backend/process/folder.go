package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Files and folders of a task folder besides the executor's own.
const (
	reportedFile = "reported.json" // the result as it was told, once outputs are stored
	homeFolder   = "home"          // HOME, and where commands begin without a sandbox
	tempFolder   = "tmp"           // TMPDIR without a sandbox
	upperFolder  = "upper"
	volumeFolder = "volumes"
	scriptFile   = "script"
)

// RunDir is the folder of a run below a home folder.
func RunDir(home, runUID string) string { return filepath.Join(home, "runs", safe(runUID)) }

// TaskDir is the folder of an attempt: a readable name and enough of a hash of its path to be unique.
func TaskDir(home, runUID, path string) string {
	sum := sha256.Sum256([]byte(path))
	name := safe(path[strings.LastIndexByte(path, '.')+1:])
	return filepath.Join(RunDir(home, runUID), "tasks", name+"-"+hex.EncodeToString(sum[:8]))
}

// LogFile is the file that the output of an attempt's commands goes to.
func LogFile(home, runUID, path string) string {
	return filepath.Join(TaskDir(home, runUID, path), spec.LogFile)
}

// safe keeps what is harmless in a file name.
func safe(name string) string {
	const longest = 60
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	return clean[:min(len(clean), longest)]
}

// clean removes what a task that has ended does not need any more: all but its log and result. Folders that are empty
// stay until the run is deleted: many file systems make new files slowly where others were removed a moment ago.
func clean(folder string) error {
	var err error
	for _, name := range []string{homeFolder, tempFolder} {
		file := filepath.Join(folder, name)
		if entries, e := os.ReadDir(file); e == nil && len(entries) == 0 {
			continue
		}
		err = errors.Join(err, removeAll(file))
	}
	for _, name := range []string{spec.StagedIn, spec.StagedOut, upperFolder, volumeFolder, scriptFile} {
		err = errors.Join(err, removeAll(filepath.Join(folder, name)))
	}
	return err
}

// removeAll removes a tree, also where a task has taken permissions from its folders.
func removeAll(name string) error {
	err := os.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walk := filepath.WalkDir(name, func(file string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(file, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(name); err != nil {
		return errors.Join(err, walk)
	}
	return nil
}
