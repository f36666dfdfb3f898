import CCurl
import Foundation
import Synchronization

/// HTTP by libcurl's multi interface, on a thread of its own.
///
/// Connections are kept and reused, and closed when the client is freed or shut down. Redirects are not followed: their status is the
/// response. Credentials go to the host of each request, and nowhere else.
public final class CurlClient: Sendable {
    private let mailbox: CurlMailbox
    private let lastID = Atomic<UInt64>(0)

    public init(configuration: CurlConfiguration = CurlConfiguration()) {
        CurlLibrary.initialize()
        mailbox = CurlMailbox()
        let mailbox = mailbox
        // The loop is made on its thread, and lives and dies there. The thread holds the mailbox but not the client.
        Thread.detachNewThread {
            CurlLoop(mailbox: mailbox, configuration: configuration).run()
        }
    }

    deinit {
        mailbox.close()
    }

    /// Ends what is under way, and everything sent from now on, with ``HTTPError/Code/cancelled``. May be called more than once.
    public func shutdown() {
        mailbox.close()
    }

    /// Any status is a response. Cancelling the task closes the transfer's connection.
    public func send(_ request: HTTPRequest) async throws(HTTPError) -> HTTPResponse {
        // A transfer that fails at once could end before its cancellation comes.
        guard !Task.isCancelled else { throw .cancelled }
        let id = lastID.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                mailbox.post(.start(CurlTask(id: id, request: request, continuation: continuation)))
                // A cancellation before the post found nothing to cancel.
                if Task.isCancelled { mailbox.post(.cancel(id)) }
            }
        } onCancel: {
            mailbox.post(.cancel(id))
        }
        return try result.get()
    }
}

/// libcurl's global state.
enum CurlLibrary {
    private static let initialized: Bool = waku_curl_global_init() == CURLE_OK

    /// Once in a process, however often it is called; libcurl wants it before anything else.
    static func initialize() {
        precondition(initialized, "libcurl has no memory for its global state")
    }
}
