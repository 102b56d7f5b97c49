package argo

import "reflect"

// RequiredFields are the JSON names of a type's fields without which an API server refuses an object, for those who
// write its schema.
func RequiredFields(t reflect.Type) []string { return requiredFields[t] }
