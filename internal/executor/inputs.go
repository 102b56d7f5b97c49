package executor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// mountSize is the size in bytes from which an input file is mounted in a sandbox; smaller ones are copied, because a
// mounted one cannot be removed or renamed by the task. (In a pod of Argo none can.)
const mountSize = 1 << 20

// sources are the folders that inputs come from, opened while the host's paths can still be seen.
type sources struct {
	inputs  []spec.Input
	folders []*os.Root
	names   []string
	// mounts are inputs that are mounted at their path instead of being copied: they are the task's own, so it may
	// write to them.
	mounts map[int]int
	pod    *pod
	close  func()
}

func openSources(dir *os.Root, task spec.Spec, p *pod) (*sources, error) {
	inputs := task.Inputs
	s := &sources{inputs: inputs, pod: p, folders: make([]*os.Root, len(inputs)), names: make([]string, len(inputs)), mounts: map[int]int{}}
	var opened []*os.Root
	s.close = func() {
		for _, root := range opened {
			_ = root.Close()
		}
	}
	for i, in := range inputs {
		switch {
		case in.Data != nil, in.From == "": // a pod's comes from the task endpoint
		case filepath.IsAbs(in.From):
			// The bytes may be elsewhere behind a link; a root does not follow links out of itself.
			from, err := filepath.EvalSymlinks(in.From)
			if err != nil {
				s.close()
				return nil, fmt.Errorf("input artifact %s: %w", in.Name, err)
			}
			root, err := os.OpenRoot(filepath.Dir(from))
			if err != nil {
				s.close()
				return nil, fmt.Errorf("input artifact %s: %w", in.Name, err)
			}
			opened = append(opened, root)
			s.folders[i], s.names[i] = root, filepath.Base(from)
		default:
			s.folders[i], s.names[i] = dir, in.From
			info, err := dir.Stat(in.From)
			if err != nil || task.Sandbox == nil || !info.IsDir() && info.Size() < mountSize {
				continue // what is missing is said when it is placed
			}
			if s.mounts[i], err = grab(filepath.Join(dir.Name(), in.From)); err != nil {
				s.close()
				return nil, fmt.Errorf("input artifact %s: %w", in.Name, err)
			}
		}
	}
	return s, nil
}

// place brings every input to its path in the task's view.
func (s *sources) place(owner *account) error {
	for i, in := range s.inputs {
		if err := s.put(i, owner); err != nil {
			return fmt.Errorf("place input artifact %s at %s: %w", in.Name, in.Path, err)
		}
	}
	return nil
}

func (s *sources) put(i int, owner *account) error {
	in := s.inputs[i]
	if mount, there := s.mounts[i]; there {
		if err := attach(mount, in.Path, false); err != nil {
			return err
		}
		return setMode(in)
	}
	if err := owner.makeFolder(filepath.Dir(in.Path)); err != nil {
		return err
	}
	if in.Data != nil {
		if err := os.WriteFile(in.Path, []byte(*in.Data), 0o666); err != nil {
			return err
		}
	} else if in.From == "" {
		if err := s.pod.fetch(i, in.Path); err != nil {
			return err
		}
	} else if filepath.IsAbs(in.From) {
		if _, err := copyTree(s.folders[i], s.names[i], view{}, in.Path); err != nil {
			return err
		}
	} else if err := moveTree(s.folders[i], s.names[i], in.Path); err != nil {
		return err
	}
	if err := owner.give(in.Path); err != nil {
		return err
	}
	return setMode(in)
}

// setMode sets the permission bits that an input asks for.
func setMode(in spec.Input) error {
	if in.Mode == nil {
		return nil
	}
	mode := fs.FileMode(*in.Mode) & fs.ModePerm
	if !in.Recurse {
		return os.Chmod(in.Path, mode)
	}
	return filepath.WalkDir(in.Path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chmod(name, mode)
	})
}
