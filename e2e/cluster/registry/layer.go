package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entry is one name in a layer: a program, a text, a symbolic link, or else a folder that every user may write to.
type entry struct{ name, file, text, link string }

// layerOf packs entries in their order.
func layerOf(entries ...entry) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, each := range entries {
		if err := each.write(writer); err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.BestSpeed))
}

func (e entry) write(to *tar.Writer) error {
	switch {
	case e.file != "":
		return e.writeFile(to)
	case e.text != "":
		return e.writeContent(to, 0o644, []byte(e.text))
	case e.link != "":
		return to.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: e.name, Linkname: e.link, Mode: 0o777, ModTime: created})
	}
	return to.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: e.name + "/", Mode: 0o1777, ModTime: created})
}

func (e entry) writeFile(to *tar.Writer) error {
	content, err := os.ReadFile(e.file)
	if err != nil {
		return err
	}
	return e.writeContent(to, 0o755, content)
}

func (e entry) writeContent(to *tar.Writer, mode int64, content []byte) error {
	if err := to.WriteHeader(&tar.Header{Name: e.name, Mode: mode, Size: int64(len(content)), ModTime: created}); err != nil {
		return err
	}
	_, err := to.Write(content)
	return err
}
