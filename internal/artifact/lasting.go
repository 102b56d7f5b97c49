package artifact

import (
	"errors"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// Lasting says whether a store's error will be the same the next time: it has refused the request, or cannot be reached for
// want of something in its description. What may pass by itself (no connection, a store that is overloaded) is not.
func Lasting(err error) bool {
	status := 0
	var plain *StatusError
	var s3 minio.ErrorResponse
	switch {
	case errors.Is(err, ErrNoSecret), errors.Is(err, ErrUnknownKind), errors.Is(err, ErrReadOnly), errors.Is(err, ErrTree), errors.Is(err, ErrOutside):
		return true
	case errors.As(err, &plain):
		status = plain.Status
	case errors.As(err, &s3):
		status = s3.StatusCode
	}
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}
