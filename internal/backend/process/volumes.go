package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// volumes makes the folders that containers mount, and says where they go. All containers of a task share one view, so
// a mount of one is there for all.
func (a *attempt) volumes(s *spec.Spec) error {
	folders := map[string]string{}
	var broken []error
	for _, v := range a.cmd.Body.Volumes {
		folder, err := a.volume(v)
		if err != nil {
			broken = append(broken, fmt.Errorf("volume %s: %w", v.Name, err))
			continue
		}
		folders[v.Name] = folder
	}
	placed := map[string]string{}
	for _, c := range a.cmd.Body.Containers {
		for _, m := range c.Mounts {
			folder, known := folders[m.Volume]
			if !known {
				// The volume is broken, or of the pod (a service account's token) and means nothing here.
				continue
			}
			from := folder
			if m.SubPath != "" {
				if !filepath.IsLocal(m.SubPath) {
					broken = append(broken, fmt.Errorf("volume %s: subPath %q leaves the volume", m.Volume, m.SubPath))
					continue
				}
				from = filepath.Join(folder, m.SubPath)
				if _, err := os.Stat(from); err != nil {
					broken = append(broken, os.MkdirAll(from, 0o777))
				}
			}
			if other, there := placed[m.Path]; there {
				if other != from {
					broken = append(broken, fmt.Errorf("two volumes are mounted at %s; containers of one task share their view here", m.Path))
				}
				continue
			}
			placed[m.Path] = from
			s.Mounts = append(s.Mounts, spec.Mount{From: from, Path: filepath.Clean(m.Path), ReadOnly: m.ReadOnly})
		}
	}
	return errors.Join(broken...)
}

// volume makes one volume's folder.
func (a *attempt) volume(v program.Volume) (string, error) {
	own := filepath.Join(a.folder, volumeFolder, safe(v.Name))
	switch v.Kind {
	case "configMap":
		return own, a.keys(v, own, a.b.cfg.ConfigMaps, "ConfigMap")
	case "secret":
		return own, a.keys(v, own, a.b.cfg.Secrets, "Secret")
	case "claim":
		if folder, ok := a.b.cfg.Claims[v.Source]; ok {
			return folder, nil
		}
		own = filepath.Join(RunDir(a.b.cfg.Home, a.run.UID), volumeFolder, safe(v.Source))
	case "emptyDir":
	default:
		a.b.cfg.Log.Warn("a volume of this kind means nothing to a process; the task gets an empty folder", "task", a.cmd.Path, "volume", v.Name, "kind", v.Kind)
	}
	// Any user of the task may write, as into a volume of Kubernetes.
	if err := os.MkdirAll(own, 0o777); err != nil {
		return "", err
	}
	return own, os.Chmod(own, 0o777)
}

// keys writes the keys of a ConfigMap or Secret as files.
func (a *attempt) keys(v program.Volume, folder string, from map[string]map[string]string, kind string) error {
	data, known := from[v.Source]
	if !known && !v.Optional {
		return fmt.Errorf("no %s %q is known here: give it with -f FILE", kind, v.Source)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	items := v.Items
	if len(items) == 0 {
		items = map[string]string{}
		for key := range data {
			items[key] = key
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for key, file := range items {
		value, there := data[key]
		if !there {
			if v.Optional {
				continue
			}
			return fmt.Errorf("%s %q has no key %q", kind, v.Source, key)
		}
		if err := root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(file, []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}
