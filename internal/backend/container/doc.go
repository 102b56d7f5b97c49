// Package container runs tasks in containers of their own images with the podman or docker program of this machine. In
// each container the executor runs the task: it and the task folder are mounted into it. Everything else (folders,
// inputs, outputs, logs, adoption after a crash) is as in the package process, whose [process.Launcher] this is.
//
// The executor is root in the container and runs each command as the user that its container or image names. So inputs
// can be placed wherever the manifest says and outputs taken from there; a rootless podman's root is nobody outside.
package container
