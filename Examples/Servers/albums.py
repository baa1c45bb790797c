#!/usr/bin/env python3
"""A small service that keeps albums in memory: albums.py PORT-FILE

Listens on this machine only, and writes the port that the system chose into the file.

GET /albums             the list, as JSON
POST /albums            adds one; a form of several parts with a title and a cover
GET /albums/1/cover     the cover
"""

import email.policy
import json
import os
import re
import sys
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

albums = [{"id": 1, "title": "Blue Train"}]
covers = {}


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/albums":
            self.answer(200, "application/json", json.dumps(albums).encode())
        elif (match := re.fullmatch(r"/albums/(\d+)/cover", self.path)) and int(match[1]) in covers:
            cover = covers[int(match[1])]
            name = f'attachment; filename="{cover.get_filename()}"'
            content = cover.get_payload(decode=True)
            self.answer(200, cover.get_content_type(), content, {"Content-Disposition": name})
        else:
            self.answer(404, "application/json", b'{"reason":"There is no such thing."}')

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        form = BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        parts = {part.get_param("name", header="Content-Disposition"): part for part in form.iter_parts()}
        if self.path != "/albums" or set(parts) != {"title", "cover"}:
            return self.answer(400, "application/json", b'{"reason":"A title and a cover are needed."}')
        album = {"id": len(albums) + 1, "title": parts["title"].get_payload(decode=True).decode()}
        albums.append(album)
        covers[album["id"]] = parts["cover"]
        self.answer(201, "application/json", json.dumps(album).encode())

    def answer(self, status, content_type, content, fields={}):
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": len(content), **fields}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
with open(sys.argv[1] + ".new", "w", encoding="ascii") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
