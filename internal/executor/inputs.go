package executor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// sources are the folders that inputs come from, opened while the host's paths can still be seen.
type sources struct {
	inputs  []spec.Input
	folders []*os.Root
	names   []string
	close   func()
}

func openSources(dir *os.Root, inputs []spec.Input) (*sources, error) {
	s := &sources{inputs: inputs, folders: make([]*os.Root, len(inputs)), names: make([]string, len(inputs))}
	var opened []*os.Root
	s.close = func() {
		for _, root := range opened {
			_ = root.Close()
		}
	}
	for i, in := range inputs {
		switch {
		case in.Data != nil:
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
		}
	}
	return s, nil
}

// place brings every input to its path in the task's view.
func (s *sources) place() error {
	for i, in := range s.inputs {
		if err := s.put(i); err != nil {
			return fmt.Errorf("place input artifact %s at %s: %w", in.Name, in.Path, err)
		}
	}
	return nil
}

func (s *sources) put(i int) error {
	in := s.inputs[i]
	if err := os.MkdirAll(filepath.Dir(in.Path), 0o777); err != nil {
		return err
	}
	if in.Data != nil {
		if err := os.WriteFile(in.Path, []byte(*in.Data), 0o666); err != nil {
			return err
		}
	} else if filepath.IsAbs(in.From) {
		if _, err := copyTree(s.folders[i], s.names[i], view{}, in.Path); err != nil {
			return err
		}
	} else if err := moveTree(s.folders[i], s.names[i], in.Path); err != nil {
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
