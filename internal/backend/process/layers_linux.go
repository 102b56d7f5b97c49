package process

import (
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
