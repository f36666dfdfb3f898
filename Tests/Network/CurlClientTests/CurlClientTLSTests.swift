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

    /// Each such certificate may take a fraction of a second to parse, before any is verified. This one, which nothing needs, is parsed fast.
    @Test(arguments: [("named_curve", true), ("explicit", false)])
    func serversOfOthersMayNotSendCurvesOfTheirOwn(encoding: String, isAccepted: Bool) async throws {
        let server = try TLSServer(chain: encoding)
        defer { server.stop() }
        var configuration = CurlConfiguration(trust: .file(path: server.authority))
        #expect(try await CurlClient(configuration: configuration).send(longTimeoutRequest(url: server.url)).status == 200)
        configuration.destinations = .publicAddresses(and: [try #require(AddressRange("127.0.0.0/8"))])
        let client = CurlClient(configuration: configuration)
        if isAccepted {
            #expect(try await client.send(longTimeoutRequest(url: server.url)).status == 200)
        } else {
            let error = try await #require(throws: HTTPError.self) { try await client.send(longTimeoutRequest(url: server.url)) }
            #expect(error.code == .tls)
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

    /// - Parameter chain: How a second certificate of the server encodes the curve of its key; nil for none.
    init(host: String = "127.0.0.1", chain: String? = nil) throws {
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
            ] + key)

        if let chain {
            let encoding = ["-pkeyopt", "ec_param_enc:\(chain)"]
            try Self.openssl(in: folder, ["req", "-x509", "-subj", "/CN=more", "-keyout", "more.key", "-out", "more.pem"] + key + encoding)
        }

        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.currentDirectoryURL = folder
        process.arguments = ["s_server", "-accept", "127.0.0.1:0", "-cert", "server.pem", "-key", "server.key", "-www"]
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
