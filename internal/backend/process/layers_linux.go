package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// layers says how each mount point of the machine comes into a private view, from the text of /proc/self/mountinfo.
// "/" and what is below /dev, /proc and /sys is left out: the view has its own way with them.
func layers(mountinfo string) []spec.Layer {
	var found []mountPoint
	for line := range strings.Lines(mountinfo) {
		m, ok := parseMount(line)
		if !ok || m.path == "/" || below(m.path, "/dev") || below(m.path, "/proc") || below(m.path, "/sys") {
			continue
		}
		// What was mounted before at or below this point is covered by it.
		found = slices.DeleteFunc(found, func(old mountPoint) bool { return below(old.path, m.path) })
		found = append(found, m)
	}
	var list []spec.Layer
	for _, m := range found {
		inside := slices.ContainsFunc(list, func(l spec.Layer) bool { return l.Bind && below(m.path, l.Path) })
		if inside {
			continue // comes with what is bound above it
		}
		list = append(list, spec.Layer{Path: m.path, Bind: m.readOnly || pseudo(m.kind) || !isFolder(m.path)})
	}
	return list
}

// pieces says the same for a view that is put together in a new root: all that lies in "/", and in folders with mounts
// inside what lies in those. The kernel refuses an overlay of such a folder as a whole.
func pieces(mounts []spec.Layer, folder string) ([]spec.Layer, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list []spec.Layer
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if path == "/dev" || path == "/proc" || path == "/sys" {
			continue
		}
		inside := slices.ContainsFunc(mounts, func(l spec.Layer) bool { return l.Path != path && below(l.Path, path) })
		mounted := slices.IndexFunc(mounts, func(l spec.Layer) bool { return l.Path == path })
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return nil, err
			}
			list = append(list, spec.Layer{Path: path, Link: target})
		case mounted >= 0 && (mounts[mounted].Bind || !inside):
			list = append(list, mounts[mounted])
		case inside:
			more, err := pieces(mounts, path)
			if err != nil {
				return nil, err
			}
			list = append(append(list, spec.Layer{Path: path, Make: true}), more...)
		case e.IsDir():
			list = append(list, spec.Layer{Path: path})
		default:
			list = append(list, spec.Layer{Path: path, Bind: true})
		}
	}
	return list, nil
}

// temporary are the folders that are empty for every task, as they are in a container: a task that gives /tmp as its
// output must not give what others left there.
var temporary = []string{"/tmp", "/var/tmp"}

// withFresh makes folders empty for the task, but for what tasks need that lies below them: programs on PATH and our own
// folder, when someone tries something out in /tmp.
func withFresh(list []spec.Layer, folders, needed []string) []spec.Layer {
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			continue
		}
		at := slices.IndexFunc(list, func(l spec.Layer) bool { return l.Path == folder })
		inside := func(l spec.Layer) bool { return l.Path == folder || below(l.Path, folder) }
		if at < 0 {
			at = len(list)
		}
		kept := slices.DeleteFunc(slices.Clone(list), inside)
		at = min(at, len(kept))
		fresh := []spec.Layer{{Path: folder, Fresh: true}}
		for _, path := range needed {
			if path != folder && filepath.IsAbs(path) && below(path, folder) && isFolder(path) &&
				!slices.ContainsFunc(fresh, func(l spec.Layer) bool { return !l.Fresh && below(path, l.Path) }) {
				fresh = append(fresh, spec.Layer{Path: filepath.Clean(path)})
			}
		}
		list = slices.Insert(kept, at, fresh...)
	}
	return list
}

// mountPoint is one line of mountinfo.
type mountPoint struct {
	path, kind string
	super      string // options of the file system
	readOnly   bool
}

// parseMount reads "id parent dev root point options optional... - type source superoptions".
func parseMount(line string) (mountPoint, bool) {
	front, back, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	fields, rest := strings.Fields(front), strings.Fields(back)
	if !ok || len(fields) < 6 || len(rest) < 1 {
		return mountPoint{}, false
	}
	m := mountPoint{path: unescape(fields[4]), kind: rest[0], readOnly: hasOption(fields[5], "ro")}
	if len(rest) > 2 {
		m.super = rest[2]
		m.readOnly = m.readOnly || hasOption(rest[2], "ro")
	}
	return m, filepath.IsAbs(m.path)
}

func hasOption(list, option string) bool { return slices.Contains(strings.Split(list, ","), option) }

// unescape replaces the octal forms of blanks and backslashes.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}

// below says whether a path is a folder or lies in it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// pseudo says whether a file system has no files of its own that a task could change.
func pseudo(kind string) bool {
	switch kind {
	case "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl",
		"hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "squashfs", "sysfs", "tracefs":
		return true
	}
	return false
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
