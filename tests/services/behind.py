"""docs/deploy/nginx.conf as it is, with the ports and the folder of a test."""

from __future__ import annotations

from pathlib import Path

CONF = Path(__file__).resolve().parents[2] / "docs" / "deploy" / "nginx.conf"
# As root, its worker would be somebody who may not look into the test's folder.
AROUND = """
user root;
pid {home}/nginx.pid; error_log {home}/nginx-error.log; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  include /etc/nginx/mime.types; access_log {home}/nginx-access.log combined;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  {site}
}}
"""


def nginx_conf(home: Path, static: Path, behind: tuple[int, int], port: int) -> str:
    """The whole configuration of an nginx at `port`, in front of two web processes."""
    site = CONF.read_text()
    for written, meant in (
        ("127.0.0.1:8001", f"127.0.0.1:{behind[0]}"),
        ("127.0.0.1:8002", f"127.0.0.1:{behind[1]}"),
        ("listen 80;", f"listen 127.0.0.1:{port};"),
        ("/srv/obversa/static/", f"{static}/"),
    ):
        assert written in site
        site = site.replace(written, meant)
    return AROUND.format(home=home, site=site)
