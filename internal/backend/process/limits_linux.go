package process

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// cgroups makes the groups that enforce the limits of containers, below the groups that this program is in.
type cgroups struct {
	unified     bool
	memory, cpu string // folders; empty where there is no such controller
}

// openCgroups finds the groups; nil where limits cannot be enforced, which it warns of.
func openCgroups(log *slog.Logger) *cgroups {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err == nil {
		var mounts []byte
		if mounts, err = os.ReadFile("/proc/self/mountinfo"); err == nil {
			var g *cgroups
			if g, err = findCgroups(string(own), string(mounts)); err == nil {
				// Whether groups may be made shows only by making one.
				trial := filepath.Join(g.memory, "sluice-trial-"+strconv.Itoa(os.Getpid()))
				if err = os.Mkdir(trial, 0o755); err == nil {
					err = os.Remove(trial)
				}
			}
			if err == nil {
				return g
			}
		}
	}
	log.Warn("limits of containers are not enforced", "reason", err)
	return nil
}

// findCgroups reads where the groups of this program are. Version 1 has a hierarchy for each controller; with version 2
// the controllers must be handed on to groups below.
func findCgroups(own, mountinfo string) (*cgroups, error) {
	mounted := map[string]string{} // controller, or "" for the unified hierarchy → mount point
	for line := range strings.Lines(mountinfo) {
		m, ok := parseMount(line)
		switch {
		case ok && m.kind == "cgroup2":
			mounted[""] = m.path
		case ok && m.kind == "cgroup":
			for controller := range strings.SplitSeq(m.super, ",") {
				mounted[controller] = m.path
			}
		}
	}
	found := &cgroups{}
	for line := range strings.Lines(own) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		for controller := range strings.SplitSeq(controllers, ",") {
			folder := filepath.Join(mounted[controller], path)
			switch {
			case mounted[controller] == "":
			case controller == "memory":
				found.memory = folder
			case controller == "cpu":
				found.cpu = folder
			}
		}
	}
	if found.memory != "" {
		return found, nil
	}
	_, path, _ := strings.Cut(own, "0::")
	path, _, _ = strings.Cut(path, "\n")
	folder := filepath.Join(mounted[""], path)
	if mounted[""] == "" {
		return nil, errors.New("no cgroups are mounted")
	}
	if err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+memory +cpu"), 0); err != nil { //nolint:gosec // a path of the kernel's own tables
		return nil, fmt.Errorf("the memory controller cannot be handed on: %w (start sluice in a scope of its own: systemd-run --user --scope -p Delegate=yes)", err)
	}
	return &cgroups{unified: true, memory: folder, cpu: folder}, nil
}

// period is the time over which a share of processors is counted, in microseconds.
const period = 100_000

// limits makes the groups for the task's containers.
func (a *attempt) limits(s *spec.Spec) error {
	g := a.b.groups
	if g == nil {
		return nil
	}
	for i, c := range a.cmd.Body.Containers {
		made, err := g.make(a.folder, i, c)
		if err != nil {
			return fmt.Errorf("limits of container %s: %w", s.Containers[i].Name, err)
		}
		if len(made) > 0 {
			if s.Groups == nil {
				s.Groups = map[string][]spec.Group{}
			}
			s.Groups[s.Containers[i].Name] = made
		}
	}
	return nil
}

// groupName is the folder of a container's group.
func groupName(task string, container int) string {
	return "sluice-" + filepath.Base(task) + "-" + strconv.Itoa(container)
}

func (g *cgroups) make(task string, number int, c program.Container) ([]spec.Group, error) {
	memory, err := Quantity(c.MemoryLimit)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	cpu, err := Quantity(c.CPULimit)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	name := groupName(task, number)
	var made []spec.Group
	if memory > 0 {
		folder := filepath.Join(g.memory, name)
		bytes := strconv.FormatInt(int64(memory), 10)
		files := [][2]string{{"memory.limit_in_bytes", bytes}}
		optional := [2]string{"memory.memsw.limit_in_bytes", bytes}
		if g.unified {
			files, optional = [][2]string{{"memory.max", bytes}}, [2]string{"memory.swap.max", "0"}
		}
		if err := makeGroup(folder, files...); err != nil {
			return nil, err
		}
		// Without swap the kernel may not have this file, and nothing is lost.
		_ = os.WriteFile(filepath.Join(folder, optional[0]), []byte(optional[1]), 0)
		made = append(made, spec.Group{Folder: folder, Unified: g.unified, Memory: true})
	}
	if cpu > 0 && g.cpu != "" {
		folder := filepath.Join(g.cpu, name)
		quota := strconv.FormatInt(int64(cpu*period), 10)
		files := [][2]string{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", quota}}
		if g.unified {
			files = [][2]string{{"cpu.max", quota + " " + strconv.Itoa(period)}}
		}
		if err := makeGroup(folder, files...); err != nil {
			return nil, err
		}
		if !g.unified || memory == 0 {
			made = append(made, spec.Group{Folder: folder, Unified: g.unified})
		}
	}
	return made, nil
}

func makeGroup(folder string, files ...[2]string) error {
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(folder, f[0]), []byte(f[1]), 0); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the groups of a task that has ended.
func (g *cgroups) remove(task string, containers int) error {
	if g == nil {
		return nil
	}
	var broken []error
	for _, parent := range []string{g.memory, g.cpu} {
		for number := range containers {
			if parent == "" {
				continue
			}
			if err := os.Remove(filepath.Join(parent, groupName(task, number))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				broken = append(broken, err)
			}
		}
	}
	return errors.Join(broken...)
}
