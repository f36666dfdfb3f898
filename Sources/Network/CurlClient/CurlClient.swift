import CCurl
import Foundation
import Synchronization

/// An HTTP client on libcurl's multi interface, with a thread of its own.
///
/// Connections are reused, and closed when the client is deallocated or shut down. Redirects are not followed: their status is the response.
/// Credentials are sent only to the host of each request.
package final class CurlClient: Sendable {
    /// Initializes libcurl once per process, which must come before any other call.
    private static let isLibraryInitialized = waku_curl_global_init() == CURLE_OK

    private let mailbox: CurlMailbox
    private let lastID = Atomic<UInt64>(0)
    private let lastCertificateEnd = Mutex<Int?>(nil)

    package init(configuration: CurlConfiguration = CurlConfiguration()) {
        precondition(Self.isLibraryInitialized, "libcurl has no memory for its global state")
        mailbox = CurlMailbox()
        let mailbox = mailbox
        // The loop is created, used and freed on its thread, which retains the mailbox but not the client.
        Thread.detachNewThread {
            CurlLoop(mailbox: mailbox, configuration: configuration).run()
        }
    }

    deinit {
        mailbox.close()
    }

    /// Ends all requests in progress, and all later ones, with ``HTTPError/Code/cancelled``. May be called more than once.
    package func shutdown() {
        mailbox.close()
    }

    /// The latest ``HTTPResponse/certificateEnd``; nil before a response has one.
    package var certificateEnd: Int? { lastCertificateEnd.withLock { $0 } }

    /// Sends a request. Any status is a response, not an error. Cancelling the task closes the transfer's connection, once no other transfer uses it.
    package func send(_ request: HTTPRequest) async throws(HTTPError) -> HTTPResponse {
        // A transfer that fails immediately could end before its cancellation arrives.
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
        let response = try result.get()
        if let end = response.certificateEnd { lastCertificateEnd.withLock { $0 = end } }
        return response
    }
}
