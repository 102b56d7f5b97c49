// Package hooks runs workflows with the Python plugin of examples/hooks and looks at what a plugin can bring about: values for tasks,
// reuse, waiting, and that a plugin that dies or talks nonsense does no harm that was not promised. The tests are compiled
// with the tag "whole" and run by `make hooks`.
package hooks
