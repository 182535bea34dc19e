package redistest
import ("testing";"time";"context";"fmt")
func TestZZ(t *testing.T){
  for i := range 4 { for _, v := range []string{"redis-7.0","redis-6.2","valkey-9"} {
  dir:=t.TempDir()
  c:=&ClusterSet{options:Options{Version:v}}
  ctx,cancel:=context.WithTimeout(t.Context(),readyTimeout)
  s:=time.Now()
  if err:=c.launch(dir);err!=nil{t.Fatal(err)}
  a:=time.Since(s)
  if err:=c.form(ctx);err!=nil{t.Fatal(err)}
  b:=time.Since(s)
  last:=""
  err:=until(ctx, func() error{ x,can:=context.WithTimeout(ctx,time.Millisecond); e:=c.Ready(x); can(); if e!=nil && e.Error()!=last { last=e.Error(); fmt.Println("   ",time.Since(s),e)}; return e})
  fmt.Println(i,v,a,b,time.Since(s),err)
  cancel(); endAll(t,c.Nodes)
  }}
}
