import Core
import CurlClient
import Foundation
import TestSupport
import Testing

/// Tests with `openssl s_server` and a certificate of an authority made for the test.
struct CurlClientTLSTests {
    @Test func theGivenAuthorityAloneIsTrusted() async throws {
        let server = try TLSServer()
        defer { server.stop() }
        let trusting = CurlClient(configuration: CurlConfiguration(trust: .file(path: server.authority)))
        #expect(try await trusting.send(longTimeoutRequest(url: server.url)).status == 200)

        let others: [CurlConfiguration.Trust] = [.system, .file(path: server.otherAuthority), .file(path: "/nowhere/authority.pem")]
        for trust in others {
            let client = CurlClient(configuration: CurlConfiguration(trust: trust))
            let error = try await #require(throws: HTTPError.self) { try await client.send(longTimeoutRequest(url: server.url)) }
            #expect(error.code == .tls)
        }
    }

    @Test("A response has the end of the server's certificate if that is asked for, also on a connection that is used again")
    func certificateEnd() async throws {
        let server = try TLSServer()
        defer { server.stop() }
        var configuration = CurlConfiguration(trust: .file(path: server.authority))
        let client = CurlClient(configuration: configuration)
        #expect(try await client.send(longTimeoutRequest(url: server.url)).certificateEnd == nil)
        #expect(client.certificateEnd == nil)
        configuration.readsCertificates = true
        let reading = CurlClient(configuration: configuration)
        for _ in 0..<2 {
            let end = try #require(try await reading.send(longTimeoutRequest(url: server.url)).certificateEnd)
            let days = (Double(end) - Date().timeIntervalSince1970) / 86_400
            #expect(days > 1.9 && days <= 2)
            #expect(reading.certificateEnd == end)
        }
    }

    /// The server would not send the certificate, which may be another one than that of the session.
    @Test(arguments: [false, true]) func aClientThatReadsCertificatesResumesNoSession(reads: Bool) async throws {
        let server = try TLSServer()
        defer { server.stop() }
        var configuration = CurlConfiguration(trust: .file(path: server.authority))
        configuration.readsCertificates = reads
        let client = CurlClient(configuration: configuration)
        var pages: [String] = []
        for _ in 0..<2 { pages.append(String(decoding: try await client.send(longTimeoutRequest(url: server.url)).body, as: UTF8.self)) }
        #expect(pages[0].contains("New, TLS"))
        #expect(pages[1].contains(reads ? "New, TLS" : "Reused, TLS"), "\(pages[1])")
    }

    /// Such a certificate may take a fraction of a second to parse, before any is verified, as may many of others. These, which nothing needs, are parsed
    /// fast.
    @Test(arguments: [("named_curve", 1, true), ("explicit", 1, false), ("named_curve", 9, true), ("named_curve", 10, false)])
    func serversOfOthersMayNotSendCertificatesThatTakeLong(encoding: String, count: Int, isAccepted: Bool) async throws {
        try await expectStranger(TLSServer(chain: encoding, count: count), isAccepted: isAccepted)
    }

    /// Numbers that a server chooses may take a second, and messages without end keep libssl from returning.
    @Test(arguments: [
        (["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], true), (["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"], false),
        (["-tls1_3", "-groups", "P-521"], true), (["-tls1_3", "-groups", "ffdhe2048"], false),
        (["-tls1_3", "-num_tickets", "20"], true), (["-tls1_3", "-num_tickets", "100"], false),
    ])
    func serversOfOthersMayNotChooseHandshakesThatTakeLong(options: [String], isAccepted: Bool) async throws {
        try await expectStranger(TLSServer(options: options), isAccepted: isAccepted)
    }

    /// Expects that a client of one's own servers accepts the server, and whether one of strangers' servers does.
    private func expectStranger(_ server: TLSServer, isAccepted: Bool) async throws {
        defer { server.stop() }
        var configuration = CurlConfiguration(trust: .file(path: server.authority))
        #expect(try await CurlClient(configuration: configuration).send(longTimeoutRequest(url: server.url)).status == 200)
        configuration.destinations = .publicAddresses(and: [try #require(AddressRange("127.0.0.0/8"))])
        let client = CurlClient(configuration: configuration)
        if isAccepted {
            #expect(try await client.send(longTimeoutRequest(url: server.url)).status == 200)
        } else {
            let error = try await #require(throws: HTTPError.self) { try await client.send(longTimeoutRequest(url: server.url)) }
            // Refused tickets end the connection after the handshake.
            #expect(error.code == .tls || error.code == .interrupted)
        }
    }

    @Test func theCertificateMustNameTheHost() async throws {
        let server = try TLSServer(host: "another.example")
        defer { server.stop() }
        let client = CurlClient(configuration: CurlConfiguration(trust: .file(path: server.authority)))
        let error = try await #require(throws: HTTPError.self) { try await client.send(longTimeoutRequest(url: server.url)) }
        #expect(error.code == .tls)
    }
}

/// Answers GET with 200 over TLS, on a port of its own.
private struct TLSServer {
    let url: String
    let authority: String
    let otherAuthority: String
    private let folder: URL
    private let process = Process()

    /// - Parameters:
    ///   - chain: How further certificates of the server encode the curve of their key; nil for none.
    ///   - count: How many there are.
    ///   - options: Further options of `openssl s_server`.
    init(host: String = "127.0.0.1", chain: String? = nil, count: Int = 1, options: [String] = []) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        authority = folder.appending(path: "authority.pem").path
        otherAuthority = folder.appending(path: "other.pem").path
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        try Self.openssl(in: folder, ["req", "-x509", "-subj", "/CN=authority", "-keyout", "authority.key", "-out", "authority.pem"] + key)
        try Self.openssl(in: folder, ["req", "-x509", "-subj", "/CN=other", "-keyout", "other.key", "-out", "other.pem"] + key)
        let name = host == "127.0.0.1" ? "IP:\(host)" : "DNS:\(host)"
        try Self.openssl(
            in: folder,
            [
                "req", "-x509", "-subj", "/CN=server", "-CA", "authority.pem", "-CAkey", "authority.key", "-addext",
                "subjectAltName=\(name)", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "server.key", "-out", "server.pem",
                // Key exchanges over finite fields are for RSA keys only.
                "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])

        if let chain {
            let encoding = ["-pkeyopt", "ec_param_enc:\(chain)"]
            try Self.openssl(in: folder, ["req", "-x509", "-subj", "/CN=more", "-keyout", "more.key", "-out", "more.pem"] + key + encoding)
            let more = folder.appending(path: "more.pem")
            try Data(repeatElement(Data(contentsOf: more), count: count).joined()).write(to: more)
        }

        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.currentDirectoryURL = folder
        process.arguments = ["s_server", "-accept", "127.0.0.1:0", "-cert", "server.pem", "-key", "server.key", "-www"] + options
        if chain != nil { process.arguments? += ["-cert_chain", "more.pem"] }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try ChildProcess.start(process)
        // It prints "ACCEPT 127.0.0.1:44021" when it listens.
        var text = ""
        while text.wholeMatch(of: /(?s).*ACCEPT 127.0.0.1:[0-9]+\n.*/) == nil {
            let data = output.fileHandleForReading.availableData
            try #require(!data.isEmpty)
            text += String(decoding: data, as: UTF8.self)
        }
        let match = try #require(text.firstMatch(of: /ACCEPT (127.0.0.1:[0-9]+)/))
        url = "https://\(match.1)/"
    }

    func stop() {
        // A child inherits its parent thread's blocked signals; SIGKILL can't be blocked.
        kill(process.processIdentifier, SIGKILL)
        try? FileManager.default.removeItem(at: folder)
    }

    private static func openssl(in folder: URL, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.currentDirectoryURL = folder
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try ChildProcess.start(process)
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }
}
