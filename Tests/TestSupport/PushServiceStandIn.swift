package import Core
import Foundation
package import WakuCrypto

/// `Tests/Interop/web_push_service.py`: a push service over TLS on loopback, with a certificate of an authority made for it.
package struct PushServiceStandIn: Sendable {
    package struct Request: Decodable, Sendable {
        package let path: String
        /// By names in lower case.
        package let headers: [String: String]
        /// Base64url.
        package let body: String
        /// The client's port.
        package let connection: Int
    }

    package let port: Int
    /// The path of a PEM file.
    package let authority: String
    private let process: ChildProcess
    private let folder: TemporaryFolder

    /// - Parameter script: The name of another script that takes the same arguments and prints the same lines.
    package init(script: String = "web_push_service.py") async throws {
        folder = try TemporaryFolder()
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        authority = folder.path + "/authority.pem"
        let (authorityKey, certificate, own) = (folder.path + "/authority.key", folder.path + "/server.pem", folder.path + "/server.key")
        for arguments in [
            ["req", "-x509", "-subj", "/CN=authority", "-keyout", authorityKey, "-out", authority] + key,
            [
                "req", "-x509", "-subj", "/CN=server", "-CA", authority, "-CAkey", authorityKey, "-addext",
                "subjectAltName=IP:127.0.0.1,DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", own, "-out",
                certificate,
            ] + key,
        ] {
            let ended = try await ExternalTool.run("openssl", arguments)
            guard ended.status == 0 else { throw TestFailure(ended.errors) }
        }
        process = try ChildProcess(
            [Repository.file("Tests/Interop/\(script)").path, certificate, own],
            program: URL(fileURLWithPath: try ExternalTool.path(of: "python3")), limit: .seconds(600))
        try await eventually { [process] in !process.lines.isEmpty || !process.isRunning }
        guard let port = process.lines.first.flatMap({ $0.split(separator: " ").last }).flatMap({ Int($0) }) else {
            throw TestFailure(process.errors)
        }
        self.port = port
    }

    package var requests: [Request] {
        process.lines.dropFirst().compactMap { try? JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }

    /// An endpoint of this service, on another host if given.
    package func endpoint(_ path: String, host: String = "127.0.0.1") -> String { "https://\(host):\(port)\(path)" }
}

/// A receiver of Web Push messages.
package struct WebPushReceiver: Sendable {
    package let key = P256PrivateKey.generate()
    package let secret = randomBytes(WebPushKeys.secretByteCount)

    package init() {}

    /// nil for an endpoint that is not valid.
    package func subscription(_ endpoint: String) -> PushSubscription? {
        WebPushKeys(publicKey: key.publicKey, secret: secret).flatMap { PushSubscription(endpoint: endpoint, keys: $0) }
    }

    /// The content of a request's body.
    package func open(_ body: String) throws -> [UInt8] {
        try WebPushEncryption.open(Base64URL.decode(body) ?? [], key: key, secret: secret)
    }
}
