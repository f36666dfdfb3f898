import PushNode
import CurlClient
import Foundation

/// A client of the admin socket of the daemon that runs on a data folder.
///
/// A request that may take long is sent only after the daemon has answered another one within the limit of prompt ones: a suspended daemon accepts
/// connections.
struct AdminClient {
    /// For requests that the daemon answers from memory.
    static let promptLimit = Duration.seconds(10)
    /// For requests that wait for the database, gorush or a relay.
    static let workLimit = Duration.seconds(60)

    private let folder: String
    private let promptLimit: Duration
    /// Kept alive because the socket's path is valid only as long as this object exists.
    private let socket: AdminSocket
    private let client: CurlClient

    /// - Throws: ``CommandFailure`` when the folder can't be opened.
    init(folder: String, promptLimit: Duration = promptLimit) throws(CommandFailure) {
        if access(folder, X_OK) != 0, errno == EACCES { throw Self.refusal(of: folder) }
        guard let socket = AdminSocket(in: folder) else {
            throw CommandFailure(.data, "data folder \(folder) can't be opened: set --data to the daemon's data folder")
        }
        self.folder = folder
        self.promptLimit = promptLimit
        self.socket = socket
        var configuration = CurlConfiguration()
        configuration.unixSocketPath = socket.path
        client = CurlClient(configuration: configuration)
    }

    /// The configuration of the daemon that runs on a folder; nil without one.
    ///
    /// - Throws: ``CommandFailure`` when one may run and does not answer: then its store is not known.
    static func setup(of folder: String) async throws(CommandFailure) -> AdminAPI.Setup? {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else { return nil }
        return try await AdminClient(folder: folder).setup()
    }

    /// nil when no daemon is running on the folder.
    func setup() async throws(CommandFailure) -> AdminAPI.Setup? { try await answer("/setup") }

    /// nil when no daemon is running on the folder.
    func status() async throws(CommandFailure) -> NodeStatus? { try await answer("/status") }

    private func answer<Outcome: Decodable>(_ path: String, timeout: Duration? = nil) async throws(CommandFailure) -> Outcome? {
        guard let response = try await send("GET", path: path, body: nil, limit: timeout ?? promptLimit) else { return nil }
        return try decode(response)
    }

    /// - Throws: ``CommandFailure``, also when no daemon answers.
    func get<Outcome: Decodable>(_ path: String, timeout: Duration? = nil) async throws(CommandFailure) -> Outcome {
        guard let outcome: Outcome = try await answer(path, timeout: timeout) else { throw noDaemon }
        return outcome
    }

    /// - Parameter timeout: nil for the limit of prompt requests.
    /// - Throws: ``CommandFailure``, also when no daemon answers.
    func post<Outcome: Decodable>(
        _ path: String, _ body: some Encodable, timeout: Duration? = nil
    ) async throws(CommandFailure) -> Outcome {
        if timeout.map({ $0 > promptLimit }) ?? false {
            guard try await send("GET", path: "/health", body: nil, limit: promptLimit) != nil else { throw noDaemon }
        }
        guard let response = try await send("POST", path: path, body: Self.encode(body), limit: timeout ?? promptLimit) else {
            throw noDaemon
        }
        return try decode(response)
    }

    var noDaemon: CommandFailure {
        CommandFailure(.unavailable, "no daemon answers on data folder \(folder): is one running with this --data?")
    }

    private static func refusal(of folder: String) -> CommandFailure {
        CommandFailure(.permission, "this user may not use data folder \(folder): run this as the daemon's user or root")
    }

    private func send(
        _ method: String, path: String, body: [UInt8]?, limit: Duration
    ) async throws(CommandFailure) -> HTTPResponse? {
        let request = HTTPRequest(
            method: method, url: "http://localhost" + path, headers: body == nil ? [] : [("Content-Type", "application/json")], body: body,
            timeout: limit)
        do throws(HTTPError) {
            return try await client.send(request)
        } catch {
            if error.code == .connect {
                // Other errors, such as that of a full queue of connections, are those of a daemon.
                switch socket.connectionError {
                case ENOENT, ENOTDIR, ECONNREFUSED: return nil
                case EACCES: throw Self.refusal(of: folder)
                default: break
                }
            }
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
