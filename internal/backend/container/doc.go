// Package container runs tasks in containers of their own images with the podman or docker program of this machine. In
// each container the executor runs the task: it and the task folder are mounted into it. Everything else (folders,
// inputs, outputs, logs, adoption after a crash) is as in the package process, whose [process.Launcher] this is.
package container
