//! What is found before a body runs: routines that cannot be called, and what cannot be stopped.

mod connect;
mod order;
mod routines;
mod shipped;
mod stop_trial;

use crate::util::{Scratch, query};
use procession::domain::source::DialectName;

/// A user of a scratch database's server, with few rights.
pub(crate) struct Login {
    /// As a GRANT names it.
    pub(crate) name: String,
    /// The scratch database as this user.
    pub(crate) url: String,
}

/// Makes a user who may connect, and nothing else.
pub(crate) async fn make_login(db: &Scratch) -> Login {
    let short = format!("u{}", &db.name[db.name.len() - 12..]);
    let before = db.url.split_once("://").expect("a URL").1.split_once('@').expect("a user").0;
    let url = db.url.replacen(&format!("://{before}@"), &format!("://{short}@"), 1);
    let name = match db.dialect {
        DialectName::Postgres => short,
        DialectName::Mysql | DialectName::Sqlite => format!("'{short}'@'%'"),
    };
    let make = match db.dialect {
        DialectName::Postgres => format!("CREATE ROLE {name} LOGIN"),
        // Of EVENT it makes no use here; without any right nobody may connect to the database.
        DialectName::Mysql | DialectName::Sqlite => format!("CREATE USER {name}"),
    };
    db.setup(&[&make]).await;
    if db.dialect == DialectName::Mysql {
        db.setup(&[&format!("GRANT EVENT ON {}.* TO {name}", db.name)]).await;
    }
    Login { name, url }
}

impl Login {
    pub(crate) async fn drop(self, db: &Scratch) {
        match db.dialect {
            DialectName::Postgres => {
                db.setup(&[&format!("DROP OWNED BY {}", self.name)]).await;
                db.setup(&[&format!("DROP ROLE {}", self.name)]).await;
            }
            DialectName::Mysql | DialectName::Sqlite => {
                db.setup(&[&format!("DROP USER {}", self.name)]).await;
            }
        }
    }
}

pub(crate) async fn is_mariadb(db: &Scratch) -> bool {
    db.dialect == DialectName::Mysql
        && query(&db.url, "SELECT VERSION()").await[0][0]
            .as_ref()
            .is_some_and(|version| version.contains("MariaDB"))
}
