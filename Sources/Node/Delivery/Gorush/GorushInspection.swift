package import CurlClient
import Core
import Foundation

/// The health, version and configuration of a gorush server, for diagnosis. Delivers no notifications.
package struct GorushInspection: Codable, Sendable {
    /// The response to a post without notifications, which gorush refuses with 400 after it accepted the credentials.
    package enum DryPost: Codable, Hashable, Sendable {
        /// gorush would have accepted notifications.
        case understood
        case status(Int)
        /// The server sent 400, but without gorush's text, or a page.
        case otherServer
        /// There was no response, for the given reason.
        case failed(String)
    }

    /// The configuration from `/api/config`, if accessible.
    package struct Configuration: Codable, Hashable, Sendable {
        package let isSync: Bool?
        package let isAPNEnabled: Bool?
        package let isFirebaseEnabled: Bool?
        package let hasFeedbackHook: Bool

        package init(isSync: Bool?, isAPNEnabled: Bool?, isFirebaseEnabled: Bool?, hasFeedbackHook: Bool) {
            self.isSync = isSync
            self.isAPNEnabled = isAPNEnabled
            self.isFirebaseEnabled = isFirebaseEnabled
            self.hasFeedbackHook = hasFeedbackHook
        }
    }

    /// The status of `/healthz`; nil without a response.
    package let healthStatus: Int?
    /// The reason why there was no response.
    package let problem: String?
    /// true if the TLS handshake failed, as with a certificate that has expired.
    package let isUntrusted: Bool?
    /// The whole days until the certificate of gorush, or of the proxy before it, expires; nil without TLS.
    package let certificateDaysLeft: Int?
    package let version: String?
    package let configuration: Configuration?
    package let dryPost: DryPost
    /// The time by which its clock is ahead of this machine's, accurate to about a second.
    package let clockAhead: Duration?

    /// - Parameters:
    ///   - client: an HTTP client with the credentials and trusted certificates.
    ///   - url: the URL, as for ``GorushClient``.
    /// - Throws: ``GorushError`` for a URL that can't be posted to.
    package init(client: CurlClient, url: String) async throws(GorushError) {
        let base: HTTPBaseURL
        do throws(HTTPBaseURL.Problem) {
            base = try HTTPBaseURL(parsing: url)
        } catch {
            throw GorushError(error)
        }
        let start = Date()
        do throws(HTTPError) {
            let health = try await client.send(HTTPRequest(url: base.appending(path: "/healthz")))
            (healthStatus, problem, isUntrusted) = (health.status, nil, nil)
            certificateDaysLeft = health.certificateEnd.map { ($0 - Int(start.timeIntervalSince1970)) / 86_400 }
            clockAhead = health.header("Date").flatMap { HTTPDate.clockAhead($0, from: start, to: Date()) }
        } catch {
            (healthStatus, problem, isUntrusted, certificateDaysLeft, clockAhead) = (nil, error.message, error.code == .tls, nil, nil)
        }
        guard healthStatus != nil else {
            (version, configuration, dryPost) = (nil, nil, .failed(problem ?? ""))
            return
        }
        version = await Self.version(client, base)
        configuration = await Self.configuration(client, base)
        dryPost = await Self.dryPost(client, base)
    }

    package init(
        healthStatus: Int?, problem: String? = nil, isUntrusted: Bool? = nil, version: String? = nil, configuration: Configuration? = nil,
        dryPost: DryPost,
        clockAhead: Duration? = nil, certificateDaysLeft: Int? = nil
    ) {
        self.healthStatus = healthStatus
        self.problem = problem
        self.isUntrusted = isUntrusted
        self.certificateDaysLeft = certificateDaysLeft
        self.version = version
        self.configuration = configuration
        self.dryPost = dryPost
        self.clockAhead = clockAhead
    }

    private struct VersionJSON: Decodable {
        let version: String
    }

    private static func version(_ client: CurlClient, _ base: HTTPBaseURL) async -> String? {
        guard let answer = try? await client.send(HTTPRequest(url: base.appending(path: "/version"))), answer.status == 200,
            let text = try? JSONDecoder.decode(VersionJSON.self, fromForeign: answer.body).version
        else { return nil }
        return String(text.unicodeScalars.filter { (0x20..<0x7f).contains($0.value) }.prefix(40).map(Character.init))
    }

    private static func configuration(_ client: CurlClient, _ base: HTTPBaseURL) async -> Configuration? {
        // gorush sends 201.
        guard let answer = try? await client.send(HTTPRequest(url: base.appending(path: "/api/config"))),
            (200..<300).contains(answer.status)
        else { return nil }
        return Configuration(yaml: answer.body)
    }

    private static func dryPost(_ client: CurlClient, _ base: HTTPBaseURL) async -> DryPost {
        let request = HTTPRequest(
            method: "POST", url: base.appending(path: "/api/push"), headers: [("Content-Type", "application/json")],
            body: Array(#"{"notifications":[]}"#.utf8))
        do throws(HTTPError) {
            let answer = try await client.send(request)
            switch answer.status {
            case 200..<300: return GorushReply.isWebPage(answer.body) ? .otherServer : .understood
            case 400:
                let text = String(decoding: answer.body.prefix(1000), as: UTF8.self).lowercased()
                return text.contains("notifications field") ? .understood : .otherServer
            default: return .status(answer.status)
            }
        } catch {
            return .failed(error.message)
        }
    }
}

extension GorushInspection.Configuration {
    /// Parses gorush's YAML output, of which only two levels matter: sections without indentation, and indented settings below them. Everything else,
    /// including secrets, is skipped.
    ///
    /// nil if there is no section `core`.
    init?(yaml bytes: [UInt8]) {
        var section = ""
        var indent = 0
        var settings: [String: String] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let depth = line.prefix { $0 == " " }.count
            guard let colon = line.firstIndex(of: ":"), depth < line.count else { continue }
            let name = line[line.index(line.startIndex, offsetBy: depth)..<colon]
            let value = line[line.index(after: colon)...].trimmingCharacters(in: CharacterSet(charactersIn: " \"'"))
            if depth == 0 {
                (section, indent) = (String(name), 0)
                settings[section] = value
            } else {
                if indent == 0 { indent = depth }
                if depth == indent { settings["\(section).\(name)"] = value }
            }
        }
        guard settings["core"] != nil else { return nil }
        func flag(_ name: String) -> Bool? { settings[name].flatMap(Bool.init) }
        self.init(
            isSync: flag("core.sync"), isAPNEnabled: flag("ios.enabled"), isFirebaseEnabled: flag("android.enabled"),
            hasFeedbackHook: settings["core.feedback_hook_url"]?.isEmpty == false)
    }
}
