import PushNode
import CurlClient
import Foundation

/// A client of the admin socket of the daemon that runs on a data folder.
struct AdminClient {
    private let folder: String
    /// Kept alive because the socket's path is valid only as long as this object exists.
    private let socket: AdminSocket
    private let client: CurlClient

    /// - Throws: ``CommandFailure`` when the folder can't be opened.
    init(folder: String) throws(CommandFailure) {
        if access(folder, X_OK) != 0, errno == EACCES { throw Self.refusal(of: folder) }
        guard let socket = AdminSocket(in: folder) else {
            throw CommandFailure(.data, "data folder \(folder) can't be opened: set --data to the daemon's data folder")
        }
        self.folder = folder
        self.socket = socket
        var configuration = CurlConfiguration()
        configuration.unixSocketPath = socket.path
        client = CurlClient(configuration: configuration)
    }

    /// nil when no daemon is running on the folder.
    func status() async throws(CommandFailure) -> NodeStatus? {
        guard let response = try await send("GET", path: "/status", body: nil) else { return nil }
        return try decode(response)
    }

    /// - Throws: ``CommandFailure``, also when no daemon answers.
    func get<Outcome: Decodable>(_ path: String, timeout: Duration = .seconds(60)) async throws(CommandFailure) -> Outcome {
        guard let response = try await send("GET", path: path, body: nil, timeout: timeout) else { throw noDaemon }
        return try decode(response)
    }

    /// - Throws: ``CommandFailure``, also when no daemon answers.
    func post<Outcome: Decodable>(
        _ path: String, _ body: some Encodable, timeout: Duration = .seconds(60)
    ) async throws(CommandFailure) -> Outcome {
        guard let response = try await send("POST", path: path, body: Self.encode(body), timeout: timeout) else { throw noDaemon }
        return try decode(response)
    }

    var noDaemon: CommandFailure {
        if access(socket.path, W_OK) != 0, errno == EACCES { return Self.refusal(of: folder) }
        return CommandFailure(.unavailable, "no daemon answers on data folder \(folder): is one running with this --data?")
    }

    private static func refusal(of folder: String) -> CommandFailure {
        CommandFailure(.permission, "this user may not use data folder \(folder): run this as the daemon's user or root")
    }

    private func send(
        _ method: String, path: String, body: [UInt8]?, timeout: Duration = .seconds(60)
    ) async throws(CommandFailure) -> HTTPResponse? {
        let request = HTTPRequest(
            method: method, url: "http://localhost" + path, headers: body == nil ? [] : [("Content-Type", "application/json")], body: body,
            timeout: timeout)
        do throws(HTTPError) {
            return try await client.send(request)
        } catch {
            if error.code == .connect { return nil }
            throw CommandFailure(.unavailable, "the daemon on data folder \(folder) does not answer: \(error.message)")
        }
    }

    private func decode<Value: Decodable>(_ response: HTTPResponse) throws(CommandFailure) -> Value {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        guard response.status == 200 else {
            let problem = try? decoder.decode(AdminAPI.Problem.self, from: Data(response.body)).problem
            throw CommandFailure(.unavailable, "the daemon refused: \(problem ?? "status \(response.status)")")
        }
        do {
            return try decoder.decode(Value.self, from: Data(response.body))
        } catch {
            throw CommandFailure(.data, "the daemon runs another version: use the waku-push that it was started from")
        }
    }

    private static func encode(_ value: some Encodable) -> [UInt8] {
        // The bodies are plain values, which can always be encoded.
        (try? JSONEncoder().encode(value)).map(Array.init) ?? []
    }
}
