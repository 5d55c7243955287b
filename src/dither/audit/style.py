"""How the report's page looks: dark on white, readable on paper."""

STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:2rem 1.5rem 4rem;font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;
color:#1c1c1c;background:#fff}
header{border-bottom:2px solid #1c1c1c;margin-bottom:1rem}
h1{font-size:1.9rem;line-height:1.2;margin:.1rem 0 .8rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}
h3{font-size:1.02rem;margin:1.4rem 0 .5rem;overflow-wrap:anywhere}
small,.meta,figcaption{color:#595959;font-size:.86rem;font-weight:400}
.kicker{margin:0;text-transform:uppercase;letter-spacing:.08em;font-size:.8rem;color:#595959}
.banner{font-size:1.1rem;font-weight:600;padding:.7rem 1rem;border-left:6px solid;margin:.4rem 0 .6rem}
.good{border-color:#1b7a3d}.bad{border-color:#b3261e}.plain{border-color:#6b7280}
.banner.good{background:#eaf6ee}.banner.bad{background:#fdecea}.banner.plain{background:#f3f4f6}
.badge{display:inline-block;padding:0 .5rem;border-radius:.7rem;font-size:.8rem;font-weight:600;white-space:nowrap}
.badge.good{background:#d8f0df;color:#125a2c}.badge.bad{background:#fbd9d6;color:#8c1d18}
.badge.plain{background:#e5e7eb;color:#374151}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-bottom:1px solid #e8e8e8}
th{font-weight:600;color:#444;white-space:nowrap}
td:not(:first-child){font-variant-numeric:tabular-nums}
code,pre{font:.86em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
pre{background:#f6f6f6;padding:.7rem .9rem;overflow-x:auto;white-space:pre-wrap}
article{border-left:4px solid;padding:.1rem 0 .1rem 1rem;margin:1.2rem 0;break-inside:avoid}
dl{display:grid;grid-template-columns:minmax(9rem,max-content) 1fr;gap:.15rem 1rem;margin:.4rem 0;font-size:.92rem}
dt{color:#595959;max-width:18rem}dd{margin:0;overflow-wrap:anywhere}
figure{margin:.8rem 0;break-inside:avoid}figure svg{width:100%;max-width:38rem;height:auto;border:1px solid #e8e8e8}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(24rem,1fr));gap:1rem}
.grid figure{margin:0}
@media print{body{font-size:11pt;padding:0}.wide{overflow:visible}}
"""
