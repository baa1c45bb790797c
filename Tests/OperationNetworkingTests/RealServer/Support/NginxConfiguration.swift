// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// The configuration file of an nginx of the tests.
    struct NginxConfiguration {
        let folder: String
        let ports: NginxPorts

        var text: String {
            """
            daemon off;
            worker_processes 1;
            worker_shutdown_timeout 5s;
            \(getuid() == 0 ? "user root;" : "")
            pid \(folder)/nginx.pid;
            events { worker_connections 4096; }
            http {
                access_log off;
                log_format counted "$request_method $request_uri $status";
                client_body_temp_path \(folder)/bodies;
                proxy_temp_path \(folder)/proxied;
                fastcgi_temp_path \(folder)/unused-1;
                uwsgi_temp_path \(folder)/unused-2;
                scgi_temp_path \(folder)/unused-3;
                client_max_body_size 0;
                keepalive_requests 1000000;
                http2_max_concurrent_streams 128;
                ssl_protocols TLSv1.2 TLSv1.3;
                large_client_header_buffers 8 64k;
                # /up/PORT/TARGET goes to a loopback server of the test, as it is written.
                map $request_uri $up_port { ~^/up/(?<up_number>[0-9]+)/ $up_number; }
                map $request_uri $up_target { ~^/up/[0-9]+(?<up_rest>/.*)$ $up_rest; }
                \(sites)
            }

            """
        }

        private var sites: String {
            let names = "localhost good.test 127.0.0.1"
            return [
                site("\(ports.plain)", names, nil),
                site("\(ports.secure) ssl", names, "server"),
                site("\(ports.http2) ssl http2", names, "server"),
                site("\(ports.narrow) ssl http2", names, "server", "http2_max_concurrent_streams 1;"),
                site("\(ports.brief) ssl http2", names, "server", "keepalive_requests 3;"),
                site(
                    "\(ports.counting) ssl http2", names, "server",
                    "keepalive_requests 50; access_log \(folder)/counted.log counted;"),
                site("\(ports.tls1_2) ssl", names, "server", "ssl_protocols TLSv1.2;"),
                site("\(ports.tls1_3) ssl", names, "server", "ssl_protocols TLSv1.3;"),
                site("\(ports.http2) ssl http2", "expired.test", "expired"),
                site("\(ports.http2) ssl http2", "strange.test", "strange"),
                site("\(ports.http2) ssl http2", "self.test", "self"),
                // This site has the certificate of other sites.
                site("\(ports.http2) ssl http2", "other.test", "server"),
                site("\(ports.http2) ssl http2", "client.test", "server", clients("on")),
                site("\(ports.http2) ssl http2", "optional.test", "server", clients("optional")),
            ].joined()
        }

        private func clients(_ rule: String) -> String {
            "ssl_client_certificate \(folder)/ours.pem; ssl_verify_client \(rule);"
        }

        private func site(_ listening: String, _ names: String, _ certificate: String?, _ more: String = "") -> String {
            let root = "\(folder)/root"
            let secrets = certificate.map {
                "ssl_certificate \(folder)/\($0).pem; ssl_certificate_key \(folder)/\($0).key;"
            }
            return """
                server {
                    listen 127.0.0.1:\(listening);
                    server_name \(names);
                    \(secrets ?? "")
                    \(more)
                    root \(root);
                    add_header X-Connection $connection always;
                    location / { }
                    location = /spoken { return 200 "$server_protocol $ssl_protocol $ssl_client_verify"; }
                    # It is answered when its body was read.
                    location = /read { proxy_pass http://127.0.0.1:\(ports.plain)/spoken; }
                    location = /connection { return 200 "$connection"; }
                    location = /seen { return 200 "$http_authorization|$http_proxy_authorization|$http_host"; }
                    location = /gzip { alias \(root)/text; gzip on; gzip_types *; gzip_min_length 1; }
                    location = /slow { alias \(root)/large; limit_rate 64k; }
                    location = /trailers { alias \(root)/text; gzip on; gzip_types *; add_trailer X-Sum abc; }
                    location = /closing { return 200 "closing"; keepalive_timeout 0; }
                    location = /teapot { return 418 "short and stout"; }
                    location = /found { return 302 /small; }
                    location = /permanent { return 308 /small; }
                    location = /secret {
                        alias \(root)/small;
                        auth_basic "the cave"; auth_basic_user_file \(folder)/users;
                    }
                    location /files/ { dav_methods PUT DELETE; }
                    location /slow-files/ { alias \(root)/files/; limit_rate 64k; }
                    location /up/ {
                        proxy_pass http://127.0.0.1:$up_port$up_target;
                        proxy_http_version 1.1;
                        proxy_set_header Host $http_host;
                        proxy_redirect off;
                        proxy_buffering off;
                        proxy_request_buffering off;
                        proxy_buffer_size 64k;
                        proxy_buffers 8 64k;
                    }
                }

                """
        }
    }
#endif
