package pod

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// folders says where the task's inputs and outputs can be written. A user that is not root may write nowhere in most
// images, so a folder gets an emptyDir, unless a mount of the author is there, or the emptyDir would hide what the image
// needs: then the file is read or written in place, by the rights that the command has.
type folders struct {
	// mounts are the folders to mount emptyDirs at, none inside another.
	mounts []string
	// make are the folders that the executor makes before the command starts.
	make []string
}

// systemFolders may never be hidden, with what is in them; homes and the like only as they are.
func systemFolders() []string {
	return []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"}
}

func usedFolders() []string {
	return []string{"/", "/home", "/opt", "/root", "/run", "/srv", "/var"}
}

// within says whether a path is a folder or lies in it.
func within(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}

// plan decides for one container. KFP's tasks find the folders of their outputs made.
func (b *builder) plan(c *corev1.Container, task *spec.Spec) folders {
	var f folders
	typed, wanted := wantedFolders(b.cmd.Outputs, task)
	root := asksForRoot(&b.pod.Spec, c) && !readOnly(c)
	var mounts []string
	for _, folder := range sortedKeys(wanted) {
		place, ours := folder, false
		if folder == "/tmp" || strings.HasPrefix(folder, "/tmp/") {
			place, ours = "/tmp", true
		}
		writable, mounted := authors(c, folder)
		switch {
		case mounted:
			if writable && typed[folder] {
				f.make = append(f.make, folder)
			}
		case folder == spec.PodDir: // an emptyDir, too
		case within(folder, spec.PodDir), root:
			f.make = append(f.make, folder)
		case ours || !b.hides(c, folder, task):
			mounts = append(mounts, place)
			f.make = append(f.make, folder)
		case typed[folder]:
			f.make = append(f.make, folder)
		}
	}
	if _, mounted := authors(c, "/tmp"); readOnly(c) && !mounted {
		mounts = append(mounts, "/tmp")
	}
	slices.Sort(mounts)
	for _, m := range slices.Compact(mounts) {
		if !slices.ContainsFunc(f.mounts, func(outer string) bool { return within(m, outer) }) {
			f.mounts = append(f.mounts, m)
		}
	}
	// An emptyDir is there already.
	f.make = slices.DeleteFunc(f.make, func(folder string) bool { return slices.Contains(f.mounts, folder) })
	return f
}

// wantedFolders are the folders of all that the task is given or leaves; typed are those of KFP's outputs.
func wantedFolders(outputs program.Outputs, task *spec.Spec) (typed, wanted map[string]bool) {
	typed, wanted = map[string]bool{}, map[string]bool{}
	want := func(file string, isTyped bool) {
		if !path.IsAbs(file) {
			return
		}
		folder := path.Dir(path.Clean(file))
		if path.Clean(file) == "/tmp" {
			folder = "/tmp" // which is a folder whatever the task does
		}
		wanted[folder] = true
		if isTyped {
			typed[folder] = true
		}
	}
	want(task.ExecutorOutput, true)
	for _, o := range outputs.Parameters {
		want(o.Path, o.Type != program.Any)
	}
	for _, o := range outputs.Artifacts {
		for _, file := range []string{o.Path, o.KeyFrom, o.MetadataFrom} {
			want(file, o.Type != "")
		}
	}
	for _, in := range task.Inputs {
		want(in.Path, false)
	}
	return typed, wanted
}

// authors says whether a mount of the author has a folder, and may be written to.
func authors(c *corev1.Container, folder string) (writable, mounted bool) {
	best := -1
	for _, m := range c.VolumeMounts {
		at := path.Clean(m.MountPath)
		if within(folder, at) && len(at) > best {
			best, writable, mounted = len(at), !m.ReadOnly, true
		}
	}
	return writable, mounted
}

func readOnly(c *corev1.Container) bool {
	sc := c.SecurityContext
	return sc != nil && sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem
}

// hides says whether an emptyDir at a folder would hide what the container needs: the system, a home, where it works, or
// something that its command line names and that is neither input nor output.
func (b *builder) hides(c *corev1.Container, folder string, task *spec.Spec) bool {
	if slices.Contains(usedFolders(), folder) || path.Dir(folder) == "/home" || path.Dir(folder) == "/var" {
		return true
	}
	if slices.ContainsFunc(systemFolders(), func(system string) bool { return within(folder, system) }) {
		return true
	}
	for _, dir := range []string{c.WorkingDir, b.facts[c.Name].WorkingDir} {
		if dir != "" && dir != "/" && within(path.Clean(dir), folder) {
			return true
		}
	}
	exchanged := b.exchanged(task)
	for _, word := range append(slices.Clone(c.Command), c.Args...) {
		if !path.IsAbs(word) {
			continue
		}
		word = path.Clean(word)
		if within(word, folder) && !slices.ContainsFunc(exchanged, func(p string) bool { return within(word, p) || within(p, word) }) {
			return true
		}
	}
	return false
}

// exchanged are the paths of all inputs and outputs.
func (b *builder) exchanged(task *spec.Spec) []string {
	var out []string
	add := func(p string) {
		if path.IsAbs(p) {
			out = append(out, path.Clean(p))
		}
	}
	add(task.ExecutorOutput)
	for _, o := range b.cmd.Outputs.Parameters {
		add(o.Path)
	}
	for _, o := range b.cmd.Outputs.Artifacts {
		add(o.Path)
		add(o.KeyFrom)
		add(o.MetadataFrom)
	}
	for _, in := range task.Inputs {
		add(in.Path)
	}
	return out
}

// mountFolders mounts an emptyDir at each folder, and gives the mounts. suffix tells containers' /tmp apart.
func (b *builder) mountFolders(c *corev1.Container, folders []string) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for i, folder := range folders {
		name := fmt.Sprintf("%s%d", folderVolume, i)
		if folder == "/tmp" {
			name = tempVolume
		}
		if c.Name != b.main {
			name = strings.TrimSuffix(name, "-") + "-" + c.Name
		}
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: folder})
		b.pod.Spec.Volumes = append(b.pod.Spec.Volumes, emptyDir(name))
	}
	c.VolumeMounts = append(c.VolumeMounts, mounts...)
	return mounts
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}
