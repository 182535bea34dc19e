package sms

import (
	"strings"
	"testing"
	"time"
)

// The example of Alibaba Cloud's documentation of ACS3-HMAC-SHA256.
func TestACS3Example(t *testing.T) {
	call := acs3{Key: "YourAccessKeyId", Secret: "YourAccessKeySecret", Endpoint: "https://ecs.cn-shanghai.aliyuncs.com",
		Action: "RunInstances", Version: "2014-05-26", Nonce: "3156853299f313e23d1673dc12e1703d",
		Now: time.Date(2023, 10, 26, 10, 22, 32, 0, time.UTC), Query: map[string]string{
			"ImageId": "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd", "RegionId": "cn-shanghai"}}
	_, header, err := call.sign()
	if err != nil {
		t.Fatal(err)
	}
	const want = "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
	if got := header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) {
		t.Errorf("got %s", got)
	}
}

// The example of Tencent Cloud's documentation of TC3-HMAC-SHA256.
func TestTC3Example(t *testing.T) {
	call := tc3{ID: "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE", Key: "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE",
		Endpoint: "https://cvm.tencentcloudapi.com", Service: "cvm", Action: "DescribeInstances", Now: time.Unix(1551113065,
			0),
		ContentType: "application/json; charset=utf-8",
		Body:        `{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}`}
	header, err := call.sign()
	if err != nil {
		t.Fatal(err)
	}
	const want = "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168"
	if got := header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) {
		t.Errorf("got %s", got)
	}
}
