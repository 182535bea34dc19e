package wecom

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Bounds of uploads, in bytes.
var maxUpload = map[Kind]int{KindImage: 10 << 20, KindVoice: 2 << 20, KindVideo: 10 << 20, KindFile: 20 << 20}

// Media downloads a file of a message. The newest files stay in memory, within Options.MediaCache; the content must not
// be changed.
func (c *Client) Media(ctx context.Context, id string) ([]byte, error) {
	if content, ok := c.media.get(id); ok {
		return content, nil
	}
	q := url.Values{"media_id": {id}}
	content, err := c.authorized(ctx, request{method: http.MethodGet, call: mediaCall, query: q})
	if err != nil {
		return nil, err
	}
	c.media.put(id, content)
	return content, nil
}

// Upload stores a file at the vendor for three days, and returns the id to send it with: an image, a voice, a video or
// a file.
func (c *Client) Upload(ctx context.Context, kind Kind, name string, content []byte) (id string, err error) {
	if limit, ok := maxUpload[kind]; !ok || len(content) > limit || len(content) <= 5 {
		return "", driver.NewError(ferry.ErrTooLarge, fmt.Sprintf("%d bytes cannot be uploaded as %q", len(content), kind),
			"WeCom takes more than 5 bytes: images and videos of 10 MB, voices of 2 MB, files of 20 MB", nil)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("media", name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return "", err
	}
	answer, err := c.authorized(ctx, request{method: http.MethodPost, call: "media/upload",
		query: url.Values{"type": {string(kind)}}, body: body.Bytes(), contentType: form.FormDataContentType()})
	if err != nil {
		return "", err
	}
	var out struct {
		ID string `json:"media_id"`
	}
	if err := decodeAnswer("media/upload", answer, &out); err != nil {
		return "", err
	}
	return out.ID, nil
}

// mediaCache keeps the files that were asked for last.
type mediaCache struct {
	limit int64

	mu    sync.Mutex
	size  int64
	order *list.List // of cachedFile, the newest first
	files map[string]*list.Element
}

type cachedFile struct {
	id      string
	content []byte
}

// cachedFileCost is what the cache itself needs for a file, about: without it empty files would be kept without end.
const cachedFileCost = 256

func (f cachedFile) size() int64 { return int64(len(f.id)+len(f.content)) + cachedFileCost }

func newMediaCache(limit int64) *mediaCache {
	return &mediaCache{limit: limit, order: list.New(), files: map[string]*list.Element{}}
}

func (c *mediaCache) get(id string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.files[id]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cachedFile).content, true
}

// put keeps a file that is not there yet, in the place of the oldest ones.
func (c *mediaCache) put(id string, content []byte) {
	file := cachedFile{id: id, content: content}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.files[id]; ok || file.size() > c.limit {
		return
	}
	for c.size+file.size() > c.limit {
		oldest := c.order.Remove(c.order.Back()).(cachedFile)
		delete(c.files, oldest.id)
		c.size -= oldest.size()
	}
	c.files[id] = c.order.PushFront(file)
	c.size += file.size()
}
