package container

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// machineOptions are options that make a program work here. Podman gives containers higher limits than it may where this
// program itself has been given less, and the newest of its runtimes refuses a machine with both kinds of cgroups.
func machineOptions(program string) []string {
	options := []string{"--ulimit", limit("nofile", syscall.RLIMIT_NOFILE, 1<<20), "--ulimit", limit("nproc", unix.RLIMIT_NPROC, pidMax())}
	if program != "podman" {
		return options
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil && hybrid(string(mounts)) {
		if runc, err := exec.LookPath("runc"); err == nil {
			options = append(options, "--runtime", runc)
		}
	}
	return options
}

// hybrid says whether cgroups of both versions are mounted.
func hybrid(mountinfo string) bool {
	return strings.Contains(mountinfo, " - cgroup ") && strings.Contains(mountinfo, " - cgroup2 ")
}

// limit is this process' own limit, at most highest.
func limit(name string, resource int, highest uint64) string {
	own := syscall.Rlimit{Cur: highest, Max: highest}
	if err := syscall.Getrlimit(resource, &own); err != nil {
		own.Max = highest
	}
	most := strconv.FormatUint(min(own.Max, highest), 10)
	return name + "=" + most + ":" + most
}

// pidMax is how many processes the machine can have.
func pidMax() uint64 {
	const usual = 1 << 15
	data, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return usual
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return usual
	}
	return n
}
